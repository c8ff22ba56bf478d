package agent

import (
	"net"
	"strings"
	"testing"
	"time"

	"libspx/launch/control"
	"libspx/net/tcp"
)

// Who leads ends after a cluster has called, and before it has answered: the cluster looks again,
// and leads then. One that always hangs up so, and stays, does not take it.
func TestCallsAgain(t *testing.T) {
	for _, stays := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		j := &control.Join{System: "s", Cluster: "c", Address: l.Addr().String(),
			Limit: time.Minute}
		calls := make(chan *control.Message, 1000)
		server := &tcp.Server{
			Identity: identityOf(j, leadNumber),
			Decide:   func(tcp.Process) tcp.Verdict { return tcp.Taken },
			Adopt: func(c net.Conn, _ tcp.Process) {
				c = sealedConn(c)
				m, _ := control.NewConn(c).Receive()
				calls <- m
				if !stays {
					l.Close()
				}
				c.Close()
			},
			Failed: func(tcp.Process, uint16) {},
		}
		go server.Serve(l) //nolint:errcheck // it ends with the listener
		f := seek(j, &control.Arrival{Version: control.Version, Cluster: "c"})
		if m := <-calls; m == nil || m.Attach == nil || m.Attach.Cluster != "c" {
			t.Errorf("it was called with %+v", m)
		}
		switch {
		case f.listener != nil:
			f.listener.Close()
			if stays {
				t.Error("the cluster leads a system that there is")
			}
		case !stays:
			t.Errorf("the cluster does not lead: %v", f.err)
		case f.err == nil || !strings.Contains(f.err.Error(), "does not take it"):
			t.Errorf("%+v", f)
		}
	}
}
