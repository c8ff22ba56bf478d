package steer

import (
	"testing"

	"libspx/launch/service"
)

// A job is called by its program, without its folder and arguments, and by the clusters of its
// system.
func TestIsCalled(t *testing.T) {
	alone := service.About{Program: "./papers/shrink 3 x"}
	system := service.About{Program: "./numbers 2000 1",
		System: &service.System{Parts: []service.Part{{Name: "cluster twin"},
			{Name: "I/O process numbers-twin.iop0"}}}}
	for _, c := range []struct {
		about service.About
		name  string
		want  bool
	}{
		{alone, "shrink", true}, {alone, "./papers/shrink", false}, {alone, "shr", false},
		{alone, "3", false}, {alone, "", false}, {service.About{}, "", false},
		{service.About{}, ".", false},
		{system, "numbers", true}, {system, "twin", true}, {system, "cluster twin", false},
		{system, "numbers-twin.iop0", false}, {system, "twi", false},
	} {
		if got := isCalled(c.about, c.name); got != c.want {
			t.Errorf("%q of %q: %v", c.name, c.about.Program, got)
		}
	}
}
