package steer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/service"
)

// agentVariable has the job, and what its agent does, where TestAwait has started this program as
// one.
const agentVariable = "TEST_AGENT_JOB"

func TestMain(m *testing.M) {
	if text := os.Getenv(agentVariable); text != "" {
		if err := actAsAgent(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// actAsAgent is an agent that answers one question, later than the limit for agents that do
// nothing.
func actAsAgent(text string) error {
	job, does, _ := strings.Cut(text, " ")
	number, err := strconv.ParseUint(job, 16, 64)
	if err != nil {
		return err
	}
	listener, err := service.Listen(number)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if err := service.Await(listener); err != nil {
		return err
	}
	conn, err := service.Take(listener)
	if err != nil || conn == nil {
		return fmt.Errorf("no connection: %v, %v", conn, err)
	}
	m, err := conn.Receive()
	if err != nil {
		return err
	}
	const late = stillLimit + time.Second
	switch does {
	case "works":
		for began := time.Now(); time.Since(began) < late; { //nolint:revive // it uses a processor
		}
	case "asks":
		// seen by the other
		conn.Send(&service.Message{Kind: m.Kind, World: service.PassedOn, Name: "far", FD: -1}) //nolint:errcheck
		// so long the other host takes
		time.Sleep(late)
	case "stops":
		unix.Kill(os.Getpid(), unix.SIGSTOP) //nolint:errcheck // seen by the other
	case "ends":
		return nil
	default:
		time.Sleep(time.Hour)
	}
	// seen by the other
	conn.Send(&service.Message{Kind: m.Kind, Text: `{"job": "` + job + `"}`, FD: -1}) //nolint:errcheck
	// until it has the answer
	conn.Receive() //nolint:errcheck
	return nil
}

// An agent that is busy, or has to ask another host, is waited for; one that is stopped, or does
// nothing, is told of in those words; the end of one shows at once.
func TestAwait(t *testing.T) {
	// as busy as the machine is (TestPatience has both)
	for does, want := range map[string]string{"works": "", "asks": "", "stops": "SIGCONT",
		"sleeps": "it does nothing|it is busy, or waits for a processor",
		"ends":   "has ended"} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			job := rand.Uint64()
			agent := exec.Command(os.Args[0])
			agent.Env = append(os.Environ(), fmt.Sprintf("%s=%016x %s", agentVariable, job, does))
			out, err := agent.StdoutPipe()
			if err == nil {
				err = agent.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				agent.Process.Kill() //nolint:errcheck // it may have ended
				agent.Wait()         //nolint:errcheck // it was killed
			}()
			if n, err := out.Read(make([]byte, 16)); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			began := time.Now()
			about, err := Describe(job)
			took := time.Since(began)
			switch {
			case want == "" && (err != nil || about.Job != fmt.Sprintf("%016x", job)):
				t.Errorf("after %v: %+v, %v", took, about, err)
			case want != "" && (err == nil || !regexp.MustCompile(want).MatchString(err.Error()) ||
				errors.Is(err, ErrLate) != (does != "ends")):
				t.Errorf("after %v: %v", took, err)
			case does == "ends" && took > stillLimit:
				t.Errorf("its end is seen after %v", took)
			}
		})
	}
}
