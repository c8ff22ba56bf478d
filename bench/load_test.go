package main

import "testing"

func TestRowKeys(t *testing.T) {
	got, err := parseRows("pingpong 8 0.5\nbarrier 0 12.25\n")
	if err != nil || got["pingpong 8"] != 0.5 || got["barrier 0"] != 12.25 {
		t.Errorf("parseRows = %v, %v", got, err)
	}
	if _, err := parseRows("pingpong 8\n"); err == nil {
		t.Error("a broken line was taken")
	}
}

func TestLoad(t *testing.T) {
	before := load{busy: 100, stolen: 3, idle: 1000}
	after := load{busy: 200, stolen: 8, idle: 1900}
	d := after.since(before)
	if d.stolenShare() != 5.0/1005 {
		t.Errorf("stolen share = %v", d.stolenShare())
	}
	if share := d.foreignShare(60); share != 40.0/1005 {
		t.Errorf("foreign share = %v", share)
	}
}
