package bounded

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// TestEndless: a program that prints for ever ends when its output has reached the limit.
func TestEndless(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var b Buffer
	cmd := exec.CommandContext(ctx, "yes")
	cmd.Stdout = &b
	if err := cmd.Run(); err == nil || ctx.Err() != nil {
		t.Errorf("ended with %v, %v", err, ctx.Err())
	}
	if b.Len() == 0 || b.Len() > Limit {
		t.Errorf("%d bytes are kept", b.Len())
	}
}
