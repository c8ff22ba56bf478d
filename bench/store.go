package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// result is what was measured, as it stands in results.json.
type result struct {
	Machine         string
	Processors      int
	Peers           string
	Impls           []string
	TCP             bool           `json:",omitempty"` // over loopback TCP, without shared memory
	Stolen, Foreign float64        // a round counts up to these shares of processor time taken by others
	Dropped         map[string]int // rounds thrown away, by reason
	Rounds          []round

	second *result // the same measured again, kept in the folder "second" of the first
}

// round is one undisturbed round of a set: microseconds by row ("pingpong 8") and implementation; "bare": a limit.
type round struct {
	Set    string
	Ranks  int
	At     string
	Commit string
	US     map[string]map[string]float64
}

// counted is the number of rounds that have all rows of the set.
func (r *result) counted(s set) (n int) {
	for _, one := range r.Rounds {
		if one.Set == s.key && !slices.ContainsFunc(s.rows, func(row string) bool { return one.US[row] == nil }) {
			n++
		}
	}
	return n
}

// sets are the keys of the rounds, by ranks.
func (r *result) sets() (keys []string) {
	for _, one := range r.Rounds {
		if !slices.Contains(keys, one.Set) {
			keys = append(keys, one.Set)
		}
	}
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := setRanks(keys[i]), setRanks(keys[j])
		if a != b {
			return a < b
		}
		return keys[i] < keys[j]
	})
	return keys
}

func setRanks(key string) int {
	n, _ := strconv.Atoi(strings.Fields(key)[0])
	return n
}

// rows are the names of a set's rows, in the order of the program's tables as far as the first letter of their group tells.
func (r *result) rows(key string, impl string) (names []string) {
	seen := map[string]bool{}
	for _, one := range r.Rounds {
		for name, by := range one.US {
			if _, ok := by[impl]; ok && one.Set == key && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, x := splitRow(names[i])
		b, y := splitRow(names[j])
		if p, q := place(a), place(b); p != q {
			return p < q
		}
		if a != b {
			return a < b
		}
		return x < y
	})
	return names
}

// inOrder is the order of the rows in the tables; what is not named comes last, by name.
var inOrder = strings.Fields(`pingpong anysource persistent window pairs bothways exchange overlap overlap-iallreduce barrier bcast reduce allreduce gather scatter
	allgather alltoall scan reduce_scatter gatherv scatterv allgatherv alltoallv ibarrier ibcast iallreduce ialltoall allreduce_init neighbor_alltoall comm_dup
	jacobi send-vector8 send-vector64 send-indexed send-struct pack-vector8 pack-vector64 pack-indexed pack-struct unpack-vector8 unpack-vector64 unpack-indexed unpack-struct
	put get accumulate fetch_and_op compare_and_swap put-strided put-fence win_allocate file-write file-read file-write_all file-read_all
	handover stream futex socket-pingpong socket-blocking socket-polling socket-stream socket-both meet memcpy memcpy2 cma`)

func place(name string) int {
	if i := slices.Index(inOrder, name); i >= 0 {
		return i
	}
	return len(inOrder)
}

// values are an implementation's figures of a row, round by round; rounds without the row are left out.
func (r *result) values(key, row, impl string) (us []float64) {
	for _, one := range r.Rounds {
		if by := one.US[row]; one.Set == key && by != nil {
			if v, ok := by[impl]; ok {
				us = append(us, v)
			}
		}
	}
	return us
}

// each calls f for every round of a set that has the row.
func (r *result) each(key, row string, f func(by map[string]float64, bare map[string]float64)) {
	for _, one := range r.Rounds {
		if by := one.US[row]; one.Set == key && by != nil {
			bare := map[string]float64{}
			for name, values := range one.US {
				if v, ok := values["bare"]; ok {
					bare[name] = v
				}
			}
			f(by, bare)
		}
	}
}

func splitRow(key string) (string, int) {
	name, bytes, _ := strings.Cut(key, " ")
	n, _ := strconv.Atoi(bytes)
	return name, n
}

func loadResult(dir string) (*result, error) {
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s/results.json: %w", dir, err)
	}
	return r, nil
}

// besides takes up the measurement of the same rows in the folder "second", if there is one.
func (r *result) besides(dir string) (err error) {
	if r.second, err = loadResult(filepath.Join(dir, "second")); os.IsNotExist(err) {
		r.second, err = nil, nil
	}
	return err
}

// encode is JSON with one line for each round.
func (r *result) encode() ([]byte, error) {
	head := *r
	head.Rounds = []round{}
	data, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	for _, one := range r.Rounds {
		line, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return bytes.Replace(data, []byte("\"Rounds\": []"), append(append([]byte("\"Rounds\": [\n"), bytes.Join(lines, []byte(",\n"))...), ']'), 1), nil
}

// save writes results.json alone: after every round, so that nothing is lost.
func (r *result) save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, "results.json.new")
	if err := os.WriteFile(fresh, data, 0o666); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(dir, "results.json"))
}

// write writes results.json, the page and the plots.
func (r *result) write(dir string) error {
	if err := r.save(dir); err != nil {
		return err
	}
	if err := r.besides(dir); err != nil {
		return err
	}
	page := r.markdown(true)
	if how, err := filepath.Rel(dir, "bench/README.md"); err == nil {
		page = strings.Replace(page, "(../../bench/README.md)", "("+filepath.ToSlash(how)+")", 1)
	}
	files := map[string][]byte{"README.md": []byte(page)}
	for name, svg := range r.plots() {
		files[name] = []byte(svg)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	fmt.Print(r.summary())
	fmt.Printf("\nwritten to %s\n", dir)
	return nil
}
