package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"libspx/launch/live"
	"libspx/launch/live/metrics"
	"libspx/launch/live/web"
	"libspx/launch/steer"
)

// `spxctl serve`, and the process that exports a job's metrics to Prometheus: docs/live.md.

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve JOB",
		Short: "shows a job on a web page, as it changes",
		Long: `Prints the address of the page, which has a random token in it: who does not have the address sees nothing. Hosts, ranks with their states and traffic, deaths,
clusters and links of a system. Below the same address, metrics gives the metrics for Prometheus and view.json one look for programs. It listens on the loopback
interface until it is interrupted; with ssh -L the page is seen elsewhere.
` + jobHelp,
		Args: cobra.ExactArgs(1),
	}
	listen := c.Flags().String("listen", "127.0.0.1:0", "address and port (0: any that is free); what it says is not encrypted")
	every := c.Flags().Duration("every", time.Second, "time from one look to the next")
	file := c.Flags().String("token-file", "", "a file (-: standard input) with a token in place of a random one: at least 16 letters and digits. It must not be readable by other users")
	c.RunE = func(_ *cobra.Command, args []string) error {
		token, err := tokenOf(*file)
		if err != nil {
			return err
		}
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			return err
		}
		s := web.New(func() (*live.Look, error) { return live.Take(job) }, token)
		stop := make(chan struct{})
		go s.Watch(max(*every, shortest), stop)
		return serveUntilSignal(l, s, stop, func() { fmt.Printf("http://%s/%s/\n", l.Addr(), token) })
	}
	return c
}

const shortestToken = 16

// tokenOf is the token of a file, or a random one if there is none. It is never part of a command
// line, which all users of the host see.
func tokenOf(file string) (string, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return web.Token(), nil
	case "-":
		text, err = io.ReadAll(io.LimitReader(os.Stdin, longestToken))
	default:
		info, e := os.Stat(file)
		if e != nil {
			return "", fmt.Errorf("--token-file: %w", e)
		}
		if info.Mode().Perm()&0o077 != 0 {
			return "", fmt.Errorf("--token-file: %s can be read or changed by others than its owner (mode %#o): chmod 600", file, info.Mode().Perm())
		}
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	return token, checkToken(token)
}

// longestToken is read of standard input, in bytes.
const longestToken = 4096

func checkToken(token string) error {
	for _, r := range token {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return fmt.Errorf("--token-file: %q is no letter or digit", r)
		}
	}
	if len(token) < shortestToken {
		return fmt.Errorf("--token-file: the token has %d letters; at least %d are needed, by chance", len(token), shortestToken)
	}
	return nil
}

// Limits on connections.
const (
	headLimit = 10 * time.Second
	endLimit  = time.Second
	longHead  = 16 << 10
)

// serveUntilSignal calls ready when a signal ends it in order from then on.
func serveUntilSignal(l net.Listener, h http.Handler, stop chan struct{}, ready func()) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: headLimit, IdleTimeout: time.Minute, MaxHeaderBytes: longHead}
	stopped := onSignal(func() {
		close(stop)
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		s.Shutdown(ctx) //nolint:errcheck // pages that are open are cut off
		s.Close()       //nolint:errcheck // the process ends
	})
	ready()
	if err := s.Serve(l); !stopped() && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// exportCommand is what spxrun --metrics starts: descriptor 3 is the socket that listens.
func exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "export JOB",
		Short:  "gives a job's metrics to Prometheus on the socket that it inherits",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f := os.NewFile(3, "listener")
			l, err := net.FileListener(f)
			if err != nil {
				return fmt.Errorf("descriptor 3: %w", err)
			}
			f.Close()
			mux := http.NewServeMux()
			// The job is looked up at each scrape: at the first it may not answer yet.
			mux.Handle("GET "+metrics.Path, metrics.Handler(func() (*live.Look, error) {
				job, err := steer.Find(args[0])
				if err != nil {
					return nil, err
				}
				return live.Take(job)
			}))
			mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Security-Policy", "default-src 'none'")
				fmt.Fprintf(w, "libspx, job %s: the metrics are at %s\n", args[0], metrics.Path)
			})
			return serveUntilSignal(l, mux, make(chan struct{}), func() {})
		},
	}
}
