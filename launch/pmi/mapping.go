package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

// Mapping reads the value of PMI_process_mapping and returns the node of each of size processes. A
// block (first, nodes, each) gives each of so many nodes from the first on so many processes; after
// the last block the first follows again. Nodes may be the same host all the same: the value is a
// hint, and processes have to compare hosts themselves.
func Mapping(value string, size int) ([]int, error) {
	bad := func(why string) ([]int, error) {
		return nil, fmt.Errorf("PMI_process_mapping=%q: %s", value, why)
	}
	body, ok := strings.CutPrefix(value, "(vector")
	if ok {
		body, ok = strings.CutSuffix(body, ")")
	}
	if !ok {
		return bad("not of the form (vector,(...),...)")
	}
	type block struct{ first, nodes, each int }
	var blocks []block
	for body != "" {
		rest, ok := strings.CutPrefix(body, ",(")
		inner, after, closed := strings.Cut(rest, ")")
		numbers := strings.Split(inner, ",")
		if !ok || !closed || len(numbers) != 3 {
			return bad("a block is (first node, nodes, processes of each)")
		}
		var n [3]int
		for i, s := range numbers {
			v, err := strconv.Atoi(s)
			if err != nil || v < 0 || v > 1<<24 || i > 0 && v == 0 {
				return bad(fmt.Sprintf("%q is no number that can stand there", s))
			}
			n[i] = v
		}
		blocks = append(blocks, block{n[0], n[1], n[2]})
		body = after
	}
	if len(blocks) == 0 {
		return bad("no blocks")
	}
	nodes := make([]int, 0, size)
	for {
		for _, b := range blocks {
			for i := range b.nodes {
				for range b.each {
					if len(nodes) == size {
						return nodes, nil
					}
					nodes = append(nodes, b.first+i)
				}
			}
		}
	}
}
