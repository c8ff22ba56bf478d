package main

import (
	"testing"

	"libspx/api"
)

// Every function of the standard has a body.
func TestTheStandardIsWritten(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := findBodies(root, tables)
	if err != nil {
		t.Fatal(err)
	}
	standard, _ := lacking(tables, b)
	n := 0
	for _, f := range tables.Functions {
		if f.Header == "mpi.h" {
			n++
		}
	}
	if n != 662 {
		t.Errorf("the table has %d functions of the standard instead of 662", n)
	}
	for _, f := range standard {
		t.Errorf("%s has no body", f.Name)
	}
}
