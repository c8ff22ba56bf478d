package live

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"libspx/launch/live"
	"libspx/tests/harness"
)

var shots = flag.String("shots", "", "folder into which the tests of the page write the pictures of docs/live.md")

// serve starts `spxctl serve` for a job, and returns the address of the page.
func (j *job) serve(t *testing.T, options ...string) (address string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxctl"), append([]string{"serve", j.number, "--every", "100ms"}, options...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // Wait tells
		late := harness.AfterFunc(limit, func() { cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			t.Errorf("spxctl serve, interrupted: %v", err)
		}
		late.Stop()
	})
	late := harness.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("spxctl serve prints no address: %v", err)
	}
	return strings.TrimSpace(line)
}

// A page in headless Chromium. What goes wrong there fails the test: exceptions, refusals by the page's policy, requests that go anywhere else.
type page struct {
	t   *testing.T
	ctx context.Context
}

func open(t *testing.T, address string) *page {
	t.Helper()
	harness.Need(t, "browser", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(limit), chromedp.UserDataDir(profile(t)))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*limit)
	t.Cleanup(cancel)
	var mu sync.Mutex // the end of the test, and of what is heard of the browser
	over := false
	t.Cleanup(func() { mu.Lock(); over = true; mu.Unlock() })
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				t.Errorf("the page: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, address) {
				t.Errorf("the page asks for %s", e.Request.URL)
			}
		}
	})
	p := &page{t, ctx}
	p.do(network.Enable(), log.Enable(), chromedp.Navigate(address))
	return p
}

func (p *page) do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatalf("chromium: %v\nto repeat: go test ./tests/live -run '%s$'", err, p.t.Name())
	}
}

// sees waits until an expression is true in the page.
func (p *page) sees(expression string) {
	p.t.Helper()
	var is bool
	defer func() {
		if p.t.Failed() {
			var text string
			chromedp.Run(p.ctx, chromedp.Evaluate("document.body.innerText", &text)) //nolint:errcheck // the test has failed already
			p.t.Logf("the page:\n%s", text)
		}
	}()
	until(p.t, expression, func() bool {
		p.do(chromedp.Evaluate("Boolean("+expression+")", &is))
		return is
	})
}

// click presses the mouse's button where a process is on the map.
func (p *page) click(proc int) {
	p.t.Helper()
	var at []float64
	p.do(chromedp.Evaluate(fmt.Sprintf(`(() => { const b = document.querySelector('rect[data-proc="%d"]').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`, proc), &at))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// shoot writes a picture for the documents, if that is wanted.
func (p *page) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	var picture []byte
	p.do(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(*shots, name), picture, 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// The page shows who is there, what flows, a death as it happens, and the end.
func TestPage(t *testing.T) {
	j := talk(t, "12", []string{"--on-death", "continue"}, "stream")
	p := open(t, j.serve(t))
	p.sees(`document.getElementById('link').textContent === 'live' && document.querySelectorAll('#map rect.rank').length === 12`)
	p.sees(`document.querySelectorAll('#map rect.level').length === 12 && document.querySelectorAll('#chart-messages polyline').length === 1`)
	p.sees(`document.getElementById('title').textContent === 'job ` + j.number + `' && /12 of 12/.test(document.getElementById('tiles').textContent)`)
	spxctl(t, "kill", j.number, "7")
	p.sees(`document.querySelectorAll('#map rect.rank.dead').length === 1 && /rank 7 has died.*signal 9/.test(document.getElementById('log').textContent)`)
	p.click(7)
	p.sees(`/rank 7.*dead, killed by signal 9/.test(document.getElementById('detail').textContent)`)
	p.click(6)
	p.sees(`/failures1$/.test(document.getElementById('detail').textContent)`)
	if *shots != "" {
		p.sees(`document.querySelector('#chart-messages polyline').points.length > 60`)
	}
	p.shoot("live-page.png")
	j.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // what is seen tells
	p.sees(`document.getElementById('link').textContent === 'the job has ended'`)
}

const flows = `
[[cluster]]
name = "camera"
program = %[1]q
args = ["source"]
ranks = 4
failure = { process = "degrade" }
[[cluster]]
name = "filter"
program = %[1]q
args = ["pass"]
ranks = 6
[[cluster]]
name = "track"
program = %[1]q
args = ["sink"]
ranks = 3
[[link]]
from = "camera"
to = "filter"
iops = 2
[[link]]
from = "filter"
to = "track"
`

// A system: clusters, links with what flows through them, and a death that one of the clusters survives.
func TestPageOfSystem(t *testing.T) {
	program := harness.Compile(t, "live/flow", []string{filepath.Join(harness.Root(), "tests/live/programs/flow.c")}, "-O1")
	dir := t.TempDir()
	mine := filepath.Join(dir, "flow")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(mine, text, 0o777)
	}
	file := filepath.Join(dir, "plant.toml")
	if err == nil {
		err = os.WriteFile(file, fmt.Appendf(nil, flows, mine), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	j := start(t, mine, []string{filepath.Join(harness.Build(t), "bin/spxrun"), "--system", file})
	until(t, "traffic of the link to the last cluster", func() bool {
		v := j.view(t)
		return v.System == "plant" && len(v.Clusters) == 3 && len(v.Links) == 2 && v.Links[1].Rates.Sent > 10 && v.Clusters[2].Rates.Received > 10
	})
	p := open(t, j.serve(t))
	p.sees(`document.querySelectorAll('#map rect.rank').length === 16 && document.querySelectorAll('#map path.tip').length === 2`)
	p.sees(`document.getElementById('title').textContent === 'system plant' && /camera-filter/.test(document.getElementById('map').textContent) && /cluster track is running/.test(document.getElementById('log').textContent)`)
	v := j.view(t)
	of := slices.IndexFunc(v.Processes, func(r live.Row) bool { return r.Cluster == "camera" })
	if of < 0 {
		t.Fatalf("no processes of the cluster camera: %+v", v)
	}
	victim, err := os.FindProcess(v.Processes[of].Pid)
	if err == nil {
		err = victim.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.sees(`/rank 0 of cluster camera has died/.test(document.getElementById('log').textContent) && document.querySelectorAll('#map rect.rank.dead').length === 1`)
	p.sees(`/cluster camera is degraded/.test(document.getElementById('log').textContent) && document.querySelectorAll('#map rect.box.degraded').length === 1`)
	p.sees(`/degraded, 3 of 4 alive/.test(document.getElementById('map').textContent)`)
	if *shots != "" {
		p.sees(`document.querySelector('#chart-messages polyline').points.length > 60`)
	}
	p.shoot("live-system.png")
}

// Who has no token sees nothing; what is sent tells browsers to take nothing from anywhere else; and nothing can be changed.
func TestPageIsClosed(t *testing.T) {
	j := talk(t, "2", nil, "stream")
	address := j.serve(t, "--token-file", tokenFile(t, "0123456789abcdefXYZ", 0o600))
	if !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.HasSuffix(address, "/0123456789abcdefXYZ/") {
		t.Fatalf("the page is at %s", address)
	}
	server := strings.TrimSuffix(address, "0123456789abcdefXYZ/")
	get := func(method, url string) (int, string, http.Header) {
		t.Helper()
		request, err := http.NewRequest(method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Timeout: limit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // what has come is looked at
		return answer.StatusCode, string(text), answer.Header
	}
	for _, c := range []struct {
		method, url string
		status      int
	}{
		{"GET", server, 403}, {"GET", server + "events", 403}, {"GET", server + "0123456789abcdefXY/view.json", 403}, {"GET", server + "0123456789abcdefXYZ0/", 403},
		{"GET", server + "metrics", 403}, {"POST", address, 405}, {"DELETE", address + "view.json", 405}, {"GET", address + "../web.go", 404}, {"GET", address + "assets", 404},
		{"GET", address + "%2e%2e/web.go", 404}, {"GET", strings.TrimSuffix(address, "/"), 301},
		{"GET", address, 200}, {"GET", address + "app.js", 200}, {"GET", address + "style.css", 200}, {"GET", address + "view.json", 200}, {"GET", address + "metrics", 200},
	} {
		status, text, header := get(c.method, c.url)
		if status != c.status {
			t.Errorf("%s %s: status %d, want %d", c.method, c.url, status, c.status)
		}
		if status == 403 && strings.Contains(text, j.number) {
			t.Errorf("%s %s tells of the job without a token", c.method, c.url)
		}
		if csp := header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s %s: the policy is %q", c.method, c.url, csp)
		}
	}
	_, page, _ := get("GET", address)
	_, script, _ := get("GET", address+"app.js")
	_, style, _ := get("GET", address+"style.css")
	for _, text := range []string{page, strings.ReplaceAll(script, "http://www.w3.org/2000/svg", ""), style} {
		if strings.Contains(text, "://") || strings.Contains(text, "innerHTML") || strings.Contains(text, "eval(") {
			t.Error("the page names another address, or makes markup or code of texts")
		}
	}
	for _, bad := range []string{"short", "0123456789abcdef/.."} {
		o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxctl"), "serve", j.number, "--token-file", "-"}, Stdin: bad})
		if o.Status != 1 || !strings.Contains(o.Stderr, "--token-file") {
			t.Errorf("token %s: status %d\n%s", bad, o.Status, o.Text())
		}
	}
	open := tokenFile(t, "0123456789abcdefXYZ", 0o644)
	o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxctl"), "serve", j.number, "--token-file", open}})
	if o.Status != 1 || !strings.Contains(o.Stderr, "can be read or changed by others than its owner (mode 0644)") {
		t.Errorf("a file that all can read: status %d\n%s", o.Status, o.Text())
	}
}

func tokenFile(t *testing.T, token string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// profile is a folder for the browser, whose helpers write to it for a moment after its end.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "libspx-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(limit); os.RemoveAll(dir) != nil && time.Now().Before(end); {
			continue
		}
	})
	return dir
}
