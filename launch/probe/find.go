package probe

import (
	"fmt"
	"slices"
)

// Find returns the cached network of the hosts of c, or else measures the unknown part, and caches
// it. again: everything is measured. A result that is not complete, because hosts could not be
// reached or the bounds were too narrow, is not kept, and one whose groups are not sure neither.
func Find(c Config, again bool) (*Network, error) {
	cache, err := OpenCache()
	if err != nil {
		return nil, fmt.Errorf("what is known of networks cannot be read: %w", err)
	}
	if !again {
		if n := cache.Find(c.Hosts); n != nil {
			return n, nil
		}
		c.Known = cache.Nearest(c.Hosts)
	}
	n, err := Run(c)
	if err != nil {
		return nil, err
	}
	if n.GroupsAre != Sure || n.Cost.Left > 0 || slices.Contains(n.Of, -1) {
		return n, nil
	}
	if err := cache.Add(n); err != nil {
		return n, fmt.Errorf("the network cannot be kept for later jobs: %w", err)
	}
	return n, nil
}
