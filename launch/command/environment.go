package command

import (
	"strings"

	"libspx/launch/service"
)

// environment is the options about the environment of programs.
type environment struct {
	policy inherit
	names  []string // with inheritList
	set    []string // NAME=VALUE, later ones win
}

type inherit int

const (
	inheritUnset inherit = iota // as in the wider scope; all, at the widest
	inheritAll
	inheritNone
	inheritList
)

// resolve builds a program's environment: what it inherits, then the settings for all programs,
// then its own.
func resolve(environ []string, global, own environment) []string {
	policy, names := global.policy, global.names
	if own.policy != inheritUnset {
		policy, names = own.policy, own.names
	}
	var out []string
	at := map[string]int{}
	add := func(kv string) {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			out[i] = kv
			return
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || service.IsPlace(name) {
			continue
		}
		if policy == inheritUnset || policy == inheritAll || policy == inheritList &&
			contains(names, name) {
			add(kv)
		}
	}
	for _, kv := range append(append([]string(nil), global.set...), own.set...) {
		add(kv)
	}
	return out
}

func lookup(environ []string, name string) string {
	v, _ := lookupOK(environ, name)
	return v
}

func lookupOK(environ []string, name string) (string, bool) {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
