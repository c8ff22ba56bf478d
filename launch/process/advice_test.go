package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestAdvice(t *testing.T) {
	err := fmt.Errorf("output file x: %w", &os.PathError{Op: "open", Path: "x",
		Err: syscall.EMFILE})
	if a := Advice(err); !strings.HasPrefix(a, "; ") || !strings.Contains(a, "ulimit -n") {
		t.Errorf("%q", a)
	}
	if a := Advice(syscall.EINVAL); a != "" {
		t.Errorf("for an error that nothing can be done about: %q", a)
	}
}
