package live

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"libspx/tests/harness"
)

// viewOf asks a page, under its address or another host and port, for what it shows; empty: it cannot be reached.
func viewOf(address, at string) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	client := http.Client{Timeout: limit}
	answer, err := client.Get("http://" + at + "/" + path + "view.json")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // what has come is looked at
	return string(text)
}

// The page is seen from elsewhere by ssh -L, as docs/live.md says, through a real server.
func TestThroughSSH(t *testing.T) {
	bin := harness.SSHD(t)
	j := talk(t, "2", nil, "stream")
	address := j.serve(t)
	here := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	server, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	cmd := exec.Command(filepath.Join(bin, "ssh"), "-N", "-o", "ExitOnForwardFailure=yes", "-L", here[strings.LastIndexByte(here, ':')+1:]+":"+server, "HOST")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }() //nolint:errcheck // it was killed
	until(t, "page through ssh", func() bool { return strings.Contains(viewOf(address, here), j.number) })
}

// The page can be opened to other addresses than 127.0.0.1; its port can be chosen.
func TestListen(t *testing.T) {
	j := talk(t, "2", nil, "stream")
	address := j.serve(t, "--listen", "127.0.0.2:0")
	if !strings.HasPrefix(address, "http://127.0.0.2:") {
		t.Fatalf("the page is at %s", address)
	}
	server, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	until(t, "page there", func() bool { return strings.Contains(viewOf(address, server), j.number) })
	if text := viewOf(address, fmt.Sprintf("127.0.0.1:%s", server[strings.LastIndexByte(server, ':')+1:])); text != "" {
		t.Errorf("on 127.0.0.1, where it should not listen, is %s", text)
	}
}
