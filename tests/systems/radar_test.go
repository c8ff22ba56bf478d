package systems

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"libspx/tests/harness"
)

// radar builds the programs of examples/radar into a folder of their own.
func radar(t *testing.T) (dir string) {
	t.Helper()
	bin := filepath.Join(harness.Build(t), "bin")
	if _, err := os.Stat(filepath.Join(bin, "mpifort")); err != nil {
		t.Skip("libspx was built without a Fortran compiler")
	}
	dir = t.TempDir()
	build := exec.Command("make", "-C", filepath.Join(harness.Root(), "examples/radar"), "OUT="+dir)
	build.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "MAKEFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func in(t *testing.T, dir string, args ...string) {
	t.Helper()
	within(t, 50*time.Second, dir, args...)
}

func within(t *testing.T, limit time.Duration, dir string, args ...string) {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: args, Dir: dir, Limit: limit})
	if o.Status != 0 || o.Late || o.Stderr != "" {
		t.Fatalf("%v: exit status %d, late: %v\n%s", args, o.Status, o.Late, o.Text())
	}
	t.Log(o.Stdout)
}

func same(t *testing.T, dir, a, b string) {
	t.Helper()
	x, err := os.ReadFile(filepath.Join(dir, a))
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(filepath.Join(dir, b))
	if err != nil {
		t.Fatal(err)
	}
	if len(x) == 0 || !bytes.Equal(x, y) {
		t.Errorf("%s (%d bytes) is not %s (%d bytes)", a, len(x), b, len(y))
	}
}

// The radar of examples/radar comes to what one process without MPI comes to, bit for bit, with one system file and with another, by the same programs. The pictures have
// the colours of what was found.
func TestRadar(t *testing.T) {
	dir := radar(t)
	spxrun := filepath.Join(harness.Build(t), "bin/spxrun")
	in(t, dir, "./alone", "200", "expected.txt", "expected.png")
	in(t, dir, "./alone", "200", "expected-faint.txt", "expected-faint.png", "12")
	built := func() (times []time.Time) {
		for _, p := range []string{"input", "compress", "doppler", "detect"} {
			info, err := os.Stat(filepath.Join(dir, p))
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, info.ModTime())
		}
		return times
	}
	before := built()
	in(t, dir, spxrun, "--timeout", harness.Seconds(40*time.Second), "--system", "radar.toml")
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	in(t, dir, spxrun, "--timeout", harness.Seconds(40*time.Second), "--system", "wide.toml")
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	same(t, dir, "faint.txt", "expected-faint.txt")
	in(t, dir, spxrun, "--timeout", harness.Seconds(40*time.Second), "--system", "standby.toml")
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	same(t, dir, "faint.png", "expected-faint.png")
	for i, at := range built() {
		if at != before[i] {
			t.Error("a program was built again")
		}
	}
	f, err := os.Open(filepath.Join(dir, "radar.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[[3]uint32]bool{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
		}
	}
	if len(colours) < 100 {
		t.Errorf("the picture has %d colours", len(colours))
	}
}

// Each cluster of the radar is started by an spxrun of its own, and the fifth comes when the others have been at work for a while: it gets what the others got, and all come to what one process
// comes to. Nothing is built again.
func TestRadarGrows(t *testing.T) {
	dir := radar(t)
	in(t, dir, "./alone", "200", "expected.txt", "expected.png")
	in(t, dir, "./alone", "200", "expected-faint.txt", "expected-faint.png", "12")
	text, err := os.ReadFile(filepath.Join(dir, "apart.toml"))
	if err != nil {
		t.Fatal(err)
	}
	s := &apart{t: t, dir: dir, file: filepath.Join(dir, "grows.toml"), on: func(string) []string { return nil }}
	s.key("radar.key")
	if err := os.WriteFile(s.file, bytes.Replace(text, []byte("127.0.0.1:7405"), []byte(freeAddress(t)), 1), 0o666); err != nil {
		t.Fatal(err)
	}
	var all []*running
	for _, cluster := range []string{"detect", "input", "doppler", "compress"} {
		all = append(all, s.start(cluster))
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if info, err := os.Stat(filepath.Join(dir, "report.txt")); err == nil && info.Size() > 0 {
			break
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			t.Fatal("nothing was detected")
		}
	}
	for _, r := range append(all, s.start("watch")) {
		r.ends(0)
	}
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	same(t, dir, "faint.txt", "expected-faint.txt")
	same(t, dir, "faint.png", "expected-faint.png")
}
