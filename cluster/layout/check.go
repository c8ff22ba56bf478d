package layout

import (
	"errors"
	"fmt"
	"slices"

	"libspx/core/ident"
)

// Check returns an error for an invalid layout.
func (l *Layout) Check() error {
	if l.Version == 0 {
		return errors.New("layout: the version is 0; the first is 1")
	}
	if err := ident.CheckCluster(l.System); err != nil {
		return fmt.Errorf("layout: the name of the system: %w", err)
	}
	if len(l.Clusters) == 0 || len(l.Clusters) > MaxClusters {
		return fmt.Errorf("layout: %d clusters; 1 to %d are possible", len(l.Clusters), MaxClusters)
	}
	if l.Growths < 0 || l.Growths > len(l.Clusters)+len(l.IOPs) {
		return fmt.Errorf("layout: %d growths of a system with %d clusters and %d IOPs", l.Growths,
			len(l.Clusters), len(l.IOPs))
	}
	t := &taken{names: map[string]bool{}, worlds: map[uint32]string{}, procs: map[int]string{}}
	for _, check := range []func(*taken) error{l.checkClusters, l.checkLinks, l.checkIOPs} {
		if err := check(t); err != nil {
			return fmt.Errorf("layout: %w", err)
		}
	}
	return nil
}

// taken is what may be there once.
type taken struct {
	names  map[string]bool
	worlds map[uint32]string // name of the cluster or IOP that has the world
	procs  map[int]string
}

func (t *taken) world(world uint32, who string) error {
	if other, ok := t.worlds[world]; ok {
		return fmt.Errorf("%s and %s have the same world, %d", other, who, world)
	}
	t.worlds[world] = who
	return nil
}

func (t *taken) proc(proc int, who string) error {
	if proc < 0 || proc >= maxProcs {
		return fmt.Errorf("%s has the process %d", who, proc)
	}
	if other, ok := t.procs[proc]; ok {
		return fmt.Errorf("process %d belongs to %s and to %s", proc, other, who)
	}
	t.procs[proc] = who
	return nil
}

func (l *Layout) checkClusters(t *taken) error {
	for i, c := range l.Clusters {
		who := "cluster " + c.Name
		if err := ident.CheckCluster(c.Name); err != nil {
			return fmt.Errorf("cluster %d: %w", i, err)
		}
		if t.names[c.Name] {
			return fmt.Errorf("there are two clusters %s", c.Name)
		}
		t.names[c.Name] = true
		if c.Since < 0 || c.Since > l.Growths {
			return fmt.Errorf("%s came with growth %d of %d", who, c.Since, l.Growths)
		}
		if c.Gone {
			continue
		}
		if len(c.Procs) == 0 || len(c.Procs) > MaxRanks {
			return fmt.Errorf("%s has %d compute processes; 1 to %d are possible", who,
				len(c.Procs), MaxRanks)
		}
		if err := t.world(c.World, who); err != nil {
			return err
		}
		for _, p := range slices.Concat(c.Procs, c.Standbys) {
			if err := t.proc(p, who); err != nil {
				return err
			}
		}
	}
	return nil
}

// areClusters reports whether a list names clusters, each once.
func (l *Layout) areClusters(list []int) error {
	for k, c := range list {
		if c < 0 || c >= len(l.Clusters) {
			return fmt.Errorf("cluster %d; there are %d, from 0", c, len(l.Clusters))
		}
		if slices.Contains(list[:k], c) {
			return fmt.Errorf("cluster %s twice", l.Clusters[c].Name)
		}
	}
	return nil
}

func (l *Layout) checkLinks(t *taken) error {
	names := map[string]bool{}
	for i, k := range l.Links {
		if err := ident.CheckCluster(k.Name); err != nil {
			return fmt.Errorf("link %d: its name: %w", i, err)
		}
		if names[k.Name] {
			return fmt.Errorf("there are two links %s", k.Name)
		}
		names[k.Name] = true
		if len(k.From)+len(k.To) == 0 {
			return fmt.Errorf("link %s joins nothing", k.Name)
		}
		for _, list := range [][]int{k.From, k.To} {
			if err := l.areClusters(list); err != nil {
				return fmt.Errorf("link %s: %w", k.Name, err)
			}
		}
	}
	return nil
}

func (l *Layout) checkIOPs(t *taken) error {
	for i, p := range l.IOPs {
		who := fmt.Sprintf("IOP %d", i)
		if p.Since < 0 || p.Since > l.Growths {
			return fmt.Errorf("%s came with growth %d of %d", who, p.Since, l.Growths)
		}
		if p.Gone {
			continue
		}
		if err := errors.Join(t.proc(p.Proc, who), t.world(p.World, who)); err != nil {
			return err
		}
		if p.Weight < 0 {
			return fmt.Errorf("%s has the weight %d", who, p.Weight)
		}
		if len(p.In)+len(p.Out) == 0 {
			return fmt.Errorf("%s belongs to no cluster", who)
		}
		var in, out []int
		for _, k := range p.Links {
			if k < 0 || k >= len(l.Links) {
				return fmt.Errorf("%s belongs to link %d; there are %d, from 0", who, k,
					len(l.Links))
			}
			in, out = append(in, l.Links[k].From...), append(out, l.Links[k].To...)
		}
		for _, side := range []struct {
			list, all []int
			what      string
		}{{p.In, in, "receives from"}, {p.Out, out, "sends to"}} {
			if err := l.areClusters(side.list); err != nil {
				return fmt.Errorf("%s %s %w", who, side.what, err)
			}
			for _, c := range side.list {
				if len(p.Links) > 0 && !slices.Contains(side.all, c) {
					return fmt.Errorf("%s %s cluster %s, which none of its links does", who,
						side.what, l.Clusters[c].Name)
				}
			}
		}
	}
	return nil
}

// Follows returns the reason why l cannot follow old: indices that processes have kept must mean
// the same.
func (l *Layout) Follows(old *Layout) error {
	switch {
	case l.System != old.System:
		return fmt.Errorf("layout: it is of the system %s, not %s", l.System, old.System)
	case l.Version <= old.Version:
		return fmt.Errorf("layout: version %d does not follow version %d", l.Version, old.Version)
	case len(l.Clusters) < len(old.Clusters) || len(l.Links) < len(old.Links) ||
		len(l.IOPs) < len(old.IOPs):
		return errors.New(
			"layout: clusters, links or IOPs are missing; those that have ended stay, with Gone")
	}
	for i, c := range old.Clusters {
		if l.Clusters[i].Name != c.Name {
			return fmt.Errorf("layout: cluster %d was %s and is %s", i, c.Name, l.Clusters[i].Name)
		}
		if l.Clusters[i].Since != c.Since {
			return fmt.Errorf(
				"layout: cluster %s has been there since growth %d, and is since growth %d", c.Name,
				c.Since, l.Clusters[i].Since)
		}
	}
	for i, p := range old.IOPs {
		if l.IOPs[i].Since != p.Since {
			return fmt.Errorf(
				"layout: IOP %d has been there since growth %d, and is since growth %d", i, p.Since,
				l.IOPs[i].Since)
		}
	}
	if l.Growths < old.Growths || !l.newSince(old) {
		return fmt.Errorf("layout: what is new in growth %d came before growth %d", l.Growths,
			old.Growths+1)
	}
	for i, k := range old.Links {
		if l.Links[i].Name != k.Name {
			return fmt.Errorf("layout: link %d was %s and is %s", i, k.Name, l.Links[i].Name)
		}
	}
	return nil
}

// newSince: entries missing in old have been added since.
func (l *Layout) newSince(old *Layout) bool {
	return !slices.ContainsFunc(l.Clusters[len(old.Clusters):],
		func(c Cluster) bool { return c.Since <= old.Growths && len(c.Procs) > 0 }) &&
		!slices.ContainsFunc(l.IOPs[len(old.IOPs):],
			func(p IOP) bool { return p.Since <= old.Growths })
}
