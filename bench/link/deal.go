package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"libspx/bench/stats"
)

// dealt is a way in which relays deal messages out to the two ranks of a cluster.
type dealt struct {
	route, messages string
	iops            int
}

func (d dealt) String() string { return fmt.Sprintf("%s, %s, k = %d", d.route, d.messages, d.iops) }

// dealing are the columns of the table: in turn, which follows from a message's number, and on demand, which its sender notes; and both where messages are not kept.
func dealing() (out []dealt) {
	for _, k := range []int{1, 2} {
		for _, messages := range []string{"fast", "kept"} {
			for _, route := range []string{"spread", "demand"} {
				out = append(out, dealt{route, messages, k})
			}
		}
	}
	return out
}

// deal measures each of them once a round (programs/deal.c), and prints the medians.
func (o *options) deal(net string) error {
	figures := map[dealt]map[string][]float64{}
	var rows []string
	for range o.rounds {
		for _, d := range dealing() {
			lines, err := o.deals(d, net)
			if err != nil {
				return err
			}
			if figures[d] == nil {
				figures[d] = map[string][]float64{}
			}
			rows = rows[:0]
			for _, line := range lines {
				at := strings.LastIndexByte(line, ' ')
				v, err := strconv.ParseFloat(line[at+1:], 64)
				if at < 0 || err != nil || v <= 0 {
					return fmt.Errorf("%s: %q is no figure", d, line)
				}
				rows = append(rows, line[:at])
				figures[d][line[:at]] = append(figures[d][line[:at]], v)
			}
		}
	}
	head, line := "| |", "|---|"
	for _, d := range dealing() {
		head, line = head+" "+d.String()+" |", line+"---:|"
	}
	fmt.Println(head + "\n" + line)
	for _, row := range rows {
		fmt.Printf("| %s |", row)
		for _, d := range dealing() {
			fmt.Printf(" %.4g |", stats.Median(figures[d][row]))
		}
		fmt.Println()
	}
	return nil
}

func (o *options) deals(d dealt, net string) ([]string, error) {
	program, ms := filepath.Join(o.dir, "deal"), strconv.Itoa(enough)
	text := fmt.Sprintf("[system]\nmessages = %q\n\n[[cluster]]\nname = \"first\"\nprogram = %q\nargs = [\"first\", %q]\nranks = 1\n\n[[cluster]]\nname = \"second\"\nprogram = %[2]q\nargs = [\"second\", %[3]q]\nranks = 2\n\n"+
		"[[link]]\nfrom = \"first\"\nto = \"second\"\niops = %[4]d\nbidirectional = true\nargs = [\"--route\", %[5]q]\n", d.messages, program, ms, d.iops, d.route)
	file := filepath.Join(o.dir, "deal.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(o.build, "bin/spxrun"), "--system", file)
	cmd.Env = os.Environ()
	if net != "shm" {
		cmd.Env = append(cmd.Env, "SPX_TRANSPORTS=tcp")
	}
	return output(cmd, 15)
}
