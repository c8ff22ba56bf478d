package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// scrape is how often Prometheus would ask at least.
const scrape = time.Second

// observed are the implementations that are libspx while spxrun looks on: options is what it is told, and stop is called when the run has ended.
func (b *bench) observed(impl string) (options string, stop func(), err error) {
	switch impl {
	case "trace":
		file := filepath.Join(b.dir, "trace.json")
		return "--trace " + file, func() { os.Remove(file) }, nil
	case "profile":
		return "--profile", func() {}, nil
	case "metrics":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, fmt.Errorf("a port for metrics: %w", err)
		}
		defer l.Close()
		ctx, cancel := context.WithCancel(context.Background())
		go ask(ctx, "http://"+l.Addr().String()+"/metrics")
		return "--metrics " + l.Addr().String(), cancel, nil
	}
	return "", nil, nil
}

// ask reads the metrics again and again, as Prometheus does.
func ask(ctx context.Context, address string) {
	every := time.NewTicker(scrape)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			continue
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // the job begins, or has ended
		}
		io.Copy(io.Discard, answer.Body) //nolint:errcheck // as above
		answer.Body.Close()
	}
}
