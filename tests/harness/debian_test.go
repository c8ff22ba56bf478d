package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What packages need is found for the machine as it is: where nothing at all is installed, a library that only another library needs is part of what is unpacked, and so is
// the C library; on a machine that has both it is the package alone.
func TestWhatDebianPackagesNeed(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get")
	}
	named := func(installed string) string {
		dir := t.TempDir()
		for name, text := range map[string]string{"status": installed, "apt.conf": fmt.Sprintf("Dir::State::status %q;\n", filepath.Join(dir, "status"))} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("timeout", "300", filepath.Join(Root(), "scripts/debian-packages"), "-l", "libmunge2")
		cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(dir, "apt.conf"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("%v\n%s", err, out)
		}
		var names []string
		for line := range strings.Lines(string(out)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
			names = append(names, name)
		}
		return " " + strings.Join(names, " ") + " "
	}
	entry := func(name string) string {
		return "Package: " + name + "\nStatus: install ok installed\nPriority: optional\nSection: libs\nMaintainer: none\nArchitecture: " + debianArch(t) + "\nVersion: 999\nDescription: none\n\n"
	}
	if all := named(""); !strings.Contains(all, " libmunge2 ") || !strings.Contains(all, " libc6 ") || !strings.Contains(all, " libgcc-s1 ") {
		t.Errorf("on an empty machine %q is needed", all)
	}
	if one := named(entry("libc6")); one != " libmunge2 " {
		t.Errorf("where the C library is installed %q is needed", one)
	}
}

func debianArch(t *testing.T) string {
	out, err := exec.Command("dpkg", "--print-architecture").Output()
	if err != nil {
		t.Skip(err)
	}
	return strings.TrimSpace(string(out))
}
