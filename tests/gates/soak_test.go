package gates

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"libspx/tests/harness"
)

// TestSoak sends many messages over TCP while connections are opened, closed and relayed through all the time: tests/c/net/routes checks each one, and that
// descriptors and memory stay. make soak sends 10^8: SPX_SOAK_MESSAGES.
func TestSoak(t *testing.T) {
	messages := 600000
	if text := os.Getenv("SPX_SOAK_MESSAGES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("SPX_SOAK_MESSAGES=%s is no number of messages", text)
		}
		messages = n
	}
	program := harness.Compile(t, "c/net/routes", []string{filepath.Join(harness.Root(), "tests/c/net/routes.c")})
	settings := []struct {
		ranks int
		part  int // of 20, of all messages: about as many as a third of the time takes
		env   []string
	}{
		{16, 10, []string{"SPX_CONNECTIONS=topology:2", "SPX_TOPOLOGY=groups:4"}},
		{12, 4, []string{"SPX_CONNECTIONS=random:5:2"}},
		{8, 6, []string{"SPX_CONNECTIONS_MAX=3"}},
	}
	for _, s := range settings {
		t.Run(s.env[0], func(t *testing.T) {
			each := (messages/20*s.part + s.ranks - 1) / s.ranks
			o := harness.Run(t, harness.Command{
				Args:  []string{filepath.Join(harness.Build(t), "bin/spxrun"), "-n", fmt.Sprint(s.ranks), program, "soak", fmt.Sprint(each)},
				Env:   append(s.env, "SPX_TRANSPORTS=tcp"),
				Limit: 2*time.Minute + time.Duration(messages/10000)*time.Second,
			})
			want := regexp.MustCompile(fmt.Sprintf(`(?m)^%d messages in .*, none lost.*$`, each*s.ranks))
			said := want.FindString(o.Stderr)
			if o.Status != 0 || said == "" {
				t.Fatalf("it failed\n%s", o.Text())
			}
			t.Log(said)
		})
	}
}
