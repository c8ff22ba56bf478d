package main

import (
	"sync"
	"testing"
)

func TestTableReusesIndices(t *testing.T) {
	var tab table[int]
	a, b := 1, 2
	i, j := tab.add(&a), tab.add(&b)
	if i == 0 || j == 0 || i == j {
		t.Fatalf("indices %d and %d", i, j)
	}
	tab.remove(i)
	tab.remove(i) // a second time has no effect
	if tab.get(i) != nil || tab.get(j) != &b || tab.get(0) != nil || tab.get(99) != nil {
		t.Errorf("after removal: %v, %v", tab.get(i), tab.get(j))
	}
	if k := tab.add(&a); k != i {
		t.Errorf("index %d instead of the free %d", k, i)
	}
	if k := tab.add(&b); k == i || k == j {
		t.Errorf("index %d is in use", k)
	}
}

func TestTableIsSafeForThreads(t *testing.T) {
	var tab table[int]
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 1000 {
				v := n
				i := tab.add(&v)
				if got := tab.get(i); got == nil || *got != n {
					t.Errorf("thread %d found another's object", n)
				}
				tab.remove(i)
			}
		}()
	}
	wg.Wait()
	if len(tab.objs) > 8 {
		t.Errorf("%d slots for 8 objects at a time", len(tab.objs))
	}
}
