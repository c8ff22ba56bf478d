package tool

import "slices"

// Categories (MPI-5.0, section 16.3.9): one for each area that a setting, a performance variable or
// an event belongs to, and "spx", which has all of them below it. Nothing is added while a program
// runs.

const root = "spx"

var areaTexts = map[string]string{
	root:             "everything that libspx has",
	"messages":       "messages and bytes sent and received",
	"matching":       "receives and messages that wait for each other",
	"transfer":       "the ways that messages take",
	"waiting":        "what a process does while it waits",
	"failures":       "deaths of processes",
	"engine":         "what is done outside of the data plane",
	"point-to-point": "limits between the ways that messages take",
	"collectives":    "algorithms of collective operations",
	"memory":         "kinds of memory",
	"network":        "processes that share no memory",
	"processes":      "processes that are spawned and connected",
	"diagnosis":      "for finding out what goes wrong",
}

func areaText(area string) string {
	if text := areaTexts[area]; text != "" {
		return text
	}
	return "settings that belong together"
}

// areasOf are the names of the categories, in the order of their indexes.
func areasOf(settings []Setting) []string {
	areas := []string{root}
	note := func(e Entry) {
		if !slices.Contains(areas, e.Area) {
			areas = append(areas, e.Area)
		}
	}
	for i := range variables {
		note(variables[i].Entry)
	}
	for i := range eventTypes {
		note(eventTypes[i].Entry)
	}
	for i := range settings {
		note(settings[i].Entry)
	}
	return areas
}

// Member is a kind of what categories have.
type Member int

// What categories have.
const (
	Cvars Member = iota
	Pvars
	Events
	Categories
)

// members are the indexes of those of a kind that belong to category cat.
func (s *State) members(cat int, of Member) []int {
	var list []int
	note := func(i int, e Entry) {
		if e.Area == s.areas[cat] {
			list = append(list, i)
		}
	}
	switch of {
	case Cvars:
		for i := range s.settings {
			note(i, s.settings[i].Entry)
		}
	case Pvars:
		for i := range variables {
			note(i, variables[i].Entry)
		}
	case Events:
		for i := range eventTypes {
			note(i, eventTypes[i].Entry)
		}
	case Categories:
		for i := 1; cat == 0 && i < len(s.areas); i++ {
			list = append(list, i)
		}
	}
	return list
}

func (s *State) noCategory(cat int) bool { return cat < 0 || cat >= len(s.areas) }

// CategoryNum is MPI_T_category_get_num.
func (s *State) CategoryNum(num *int32) Code { return needInt(num, len(s.areas)) }

// CategoryInfo is MPI_T_category_get_info.
func (s *State) CategoryInfo(cat int, name, desc Text, cvars, pvars, categories *int32) Code {
	if s.noCategory(cat) {
		return InvalidIndex
	}
	name.put(s.areas[cat])
	desc.put(areaText(s.areas[cat]))
	putInt(cvars, len(s.members(cat, Cvars)))
	putInt(pvars, len(s.members(cat, Pvars)))
	putInt(categories, len(s.members(cat, Categories)))
	return Success
}

// CategoryEvents is MPI_T_category_get_num_events.
func (s *State) CategoryEvents(cat int, num *int32) Code {
	if s.noCategory(cat) {
		return InvalidIndex
	}
	return needInt(num, len(s.members(cat, Events)))
}

// CategoryIndex is MPI_T_category_get_index.
func (s *State) CategoryIndex(name *string, index *int32) Code {
	return indexOf(name, index, len(s.areas), func(i int) bool { return s.areas[i] == *name })
}

// CategoryMembers is MPI_T_category_get_cvars, _pvars, _events and _categories: the first size
// indexes. indices has size elements, and is nil when the caller has given no array.
func (s *State) CategoryMembers(cat int, of Member, size int, indices []int32) Code {
	if s.noCategory(cat) {
		return InvalidIndex
	}
	if size < 0 || (size > 0 && indices == nil) {
		return Invalid
	}
	for k, i := range s.members(cat, of) {
		if k < size {
			indices[k] = int32(i)
		}
	}
	return Success
}

// CategoryChanged is MPI_T_category_changed.
func (s *State) CategoryChanged(stamp *int32) Code { return needInt(stamp, 0) }
