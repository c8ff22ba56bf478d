// Package web is the page of `spxctl serve` (docs/live.md): a running job on a map, as it changes.
// It owns the server, its access control, and the page itself (assets); the content is
// launch/live's. It changes nothing in a job.
//
// Everything is below a path that begins with a random token, so that only those to whom the user
// has given the address can see it; there are no cookies, which a browser would send to every other
// port of this host. The page loads nothing from elsewhere, which its content security policy
// enforces.
package web

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"libspx/launch/live"
	"libspx/launch/live/metrics"
	"libspx/launch/steer"
)

//go:embed assets
var assets embed.FS

// policy is what the page may do: use what comes from here, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Token is a new one: 128 bits by chance.
func Token() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}

// Bounds of a server.
const (
	mostClients = 64  // that get changes
	mostEvents  = 200 // that a new client gets
	beat        = 15 * time.Second
)

// A Server shows a job to browsers.
type Server struct {
	token string
	take  func() (*live.Look, error)

	mu      sync.Mutex
	clients map[chan []byte]bool // guarded by mu, like all that follows
	last    *live.Look
	view    []byte // the last view, as it is sent
	events  []live.Event
	ended   bool
}

// New is a server of the job that take looks at.
func New(take func() (*live.Look, error), token string) *Server {
	return &Server{token: token, take: take, clients: map[chan []byte]bool{}}
}

// message is what a browser is sent: a view, with what has happened since the one before, or the
// end of the job.
type message struct {
	View   *live.View   `json:"view,omitempty"`
	Events []live.Event `json:"events"`
	Ended  bool         `json:"ended,omitempty"`
}

// Watch takes a look at the job at each interval until it ends or stop is closed, and notifies all
// browsers.
func (s *Server) Watch(every time.Duration, stop <-chan struct{}) {
	for {
		look, err := s.take()
		switch {
		case err == nil:
			s.took(look)
		case !errors.Is(err, steer.ErrLate): // it may be busy: retried
			s.end()
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
	}
}

func (s *Server) took(look *live.Look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := live.Picture(look, live.Rows(s.last, look))
	events := live.Changes(s.last, look)
	s.events = append(s.events, events...)
	s.events = s.events[max(0, len(s.events)-mostEvents):]
	s.last = look
	s.view = encode(message{View: &v, Events: s.events})
	s.tell(encode(message{View: &v, Events: events}))
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.tell(encode(message{Events: []live.Event{{At: float64(time.Now().UnixMilli()) / 1000,
		Kind: "end", Text: "the job has ended"}}, Ended: true}))
}

// tell sends to all browsers; one that does not take the last misses this one.
func (s *Server) tell(text []byte) {
	for c := range s.clients {
		select {
		case c <- text:
		default:
		}
	}
}

func encode(m message) []byte {
	if m.Events == nil {
		m.Events = []live.Event{}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte(`{"events":[]}`)
	}
	return text
}

// ServeHTTP answers a browser.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	token, rest, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
		http.Error(w, "this address has no valid token: use the one that spxctl serve has printed",
			http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page is only to be read", http.StatusMethodNotAllowed)
	case !slash:
		http.Redirect(w, r, "/"+s.token+"/", http.StatusMovedPermanently)
	default:
		s.page(w, r, rest)
	}
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, name string) {
	switch name {
	case "":
		name = "index.html"
	case "events":
		s.stream(w, r)
		return
	case "view.json":
		w.Header().Set("Content-Type", "application/json")
		w.Write(s.now()) //nolint:errcheck // the browser has gone
		return
	case strings.TrimPrefix(metrics.Path, "/"):
		metrics.Handler(s.take).ServeHTTP(w, r)
		return
	}
	text, err := assets.ReadFile(path.Join("assets", path.Base(name)))
	if err != nil || path.Base(name) != name {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	kinds := map[string]string{".html": "text/html; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml"}
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	w.Write(text) //nolint:errcheck // the browser has gone
}

// now is the last view, with the events so far.
func (s *Server) now() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		return encode(message{})
	}
	return s.view
}

// stream sends a browser all events: server-sent events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	flush, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "this connection cannot be kept open", http.StatusInternalServerError)
		return
	}
	c := make(chan []byte, 4)
	if !s.join(c) {
		http.Error(w, fmt.Sprintf("there are %d pages open already", mostClients),
			http.StatusServiceUnavailable)
		return
	}
	defer s.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case text := <-c:
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		case <-time.After(beat):
			_, err = fmt.Fprint(w, ": still there\n\n")
		}
		if err != nil {
			return
		}
		flush.Flush()
	}
}

func (s *Server) join(c chan []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= mostClients {
		return false
	}
	s.clients[c] = true
	if s.view != nil {
		c <- s.view
	}
	if s.ended {
		c <- encode(message{Ended: true})
	}
	return true
}

func (s *Server) leave(c chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}
