package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// The recipes for other systems cannot be carried out everywhere; their syntax, and the files that they name, can be looked at.
func TestRecipes(t *testing.T) {
	dir := filepath.Join(harness.Root(), "packaging")
	t.Run("spack", func(t *testing.T) {
		python(t, "import ast, sys; ast.parse(open(sys.argv[1]).read())", filepath.Join(dir, "spack/package.py"))
	})
	t.Run("mpi-operator", func(t *testing.T) {
		if exec.Command("python3", "-c", "import yaml").Run() != nil {
			t.Skip("python3-yaml is not installed")
		}
		python(t, `import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
assert job["apiVersion"] == "kubeflow.org/v2beta1" and job["kind"] == "MPIJob", job
roles = job["spec"]["mpiReplicaSpecs"]
assert roles["Launcher"]["replicas"] == 1
slots = roles["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
for role in roles.values():
    for c in role["template"]["spec"]["containers"]:
        assert c["image"] == "libspx" and c["command"], c
args = roles["Launcher"]["template"]["spec"]["containers"][0]["args"]
assert int(args[args.index("-n") + 1]) == slots, args
`, filepath.Join(dir, "mpi-operator/hello.yaml"))
	})
	t.Run("docker", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(dir, "docker/Dockerfile"))
		if err != nil {
			t.Fatal(err)
		}
		joined := regexp.MustCompile(`\\\n`).ReplaceAllString(string(text), " ")
		stages := 0
		for _, line := range strings.Split(joined, "\n") {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "", "#", "WORKDIR", "ENV", "CMD":
			case "FROM":
				stages++
			case "RUN": // what the shell of the image would not read
				if out, err := exec.Command("sh", "-n", "-c", rest).CombinedOutput(); err != nil {
					t.Errorf("RUN %s: %s", rest, out)
				}
			case "COPY":
				from := strings.Fields(rest)[0]
				if _, err := os.Stat(filepath.Join(harness.Root(), from)); err != nil && !strings.HasPrefix(from, "--from=") {
					t.Errorf("COPY %s: %v", rest, err)
				}
			default:
				if !strings.HasPrefix(word, "#") {
					t.Errorf("unknown instruction %q", word)
				}
			}
		}
		if stages != 2 || !strings.Contains(joined, "golang:"+goVersion(t)) {
			t.Errorf("%d stages; the first must have Go %s, as go.mod asks for", stages, goVersion(t))
		}
	})
}

func python(t *testing.T, program string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	if out, err := exec.Command("python3", append([]string{"-c", program}, args...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// goVersion is the version of Go that the sources ask for, as 1.26.
func goVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(text))[1]
}
