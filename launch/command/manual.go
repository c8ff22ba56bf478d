package command

// An Option is an option as manuals and the completion of shells describe it.
type Option struct {
	Names    []string // without dashes; the first is the usual one
	Meta     string   // names of its values; empty: it takes none
	Group    string
	Help     string
	Ignored  bool // accepted without effect
	Optional bool // its value may be missing
}

// Options lists all options, in the order of --help.
func Options() (list []Option) {
	for _, o := range table {
		list = append(list, Option{Names: o.names, Meta: o.meta, Group: o.group, Help: o.help,
			Ignored: o.apply == nil, Optional: o.optional != nil})
	}
	return list
}

// Usage is the text of --help before the options.
func Usage() string { return usage }

// Ending is the text of --help after the options.
func Ending() string { return ending }
