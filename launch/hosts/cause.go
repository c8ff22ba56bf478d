package hosts

import (
	"fmt"
	"slices"
	"strings"
)

// Cause is why a remote shell has ended before the agent behind it has sent anything.
type Cause struct {
	Line    string // printed by the shell; empty: the cause is not known
	Advice  string // what it means and what to do, for a sentence that has named the host
	Passing bool   // it can go away by itself: trying again makes sense
}

// unreachable is the status with which ssh ends for reasons of its own.
const unreachable = 255

// causes are the words of OpenSSH's client, the ones that explain more first: several of them may
// stand among its last lines.
var causes = []struct {
	words   []string // all of them, in one line
	advice  string   // with %s for the host
	passing bool
}{
	{words: []string{"REMOTE HOST IDENTIFICATION HAS CHANGED"},
		advice: "its host key is not the one in known_hosts: if the host was made anew, " +
			"ssh-keygen -R %s removes the old one, and ssh %s true takes the new one"},
	{words: []string{"Host key verification failed"},
		advice: "its host key is not known here: ssh %s true, once by hand, shows it and takes " +
			"it into known_hosts"},
	{words: []string{"host key is known for"},
		advice: "its host key is not known here: ssh %s true, once by hand, shows it and takes " +
			"it into known_hosts"},
	{words: []string{"Permission denied"},
		advice: "it does not let this user in without a password: ssh-copy-id %s gives it a key " +
			"of this user's, which ssh must be able to use without a question (ssh-agent, or " +
			"IdentityFile in ~/.ssh/config)"},
	{words: []string{"Too many authentication failures"},
		advice: "it was offered too many keys: IdentityFile and IdentitiesOnly in ~/.ssh/config " +
			"name the one for %s"},
	{words: []string{"Could not resolve hostname", "emporary failure"},
		advice:  "the name service does not answer: getent hosts %s shows when it does",
		passing: true},
	{words: []string{"Could not resolve hostname", "Try again"},
		advice:  "the name service does not answer: getent hosts %s shows when it does",
		passing: true},
	{words: []string{"Could not resolve hostname"},
		advice: "no host of that name is known: is it spelled so in the list of hosts, and " +
			"known to /etc/hosts or the name service (getent hosts %s)?"},
	{words: []string{"Connection refused"},
		advice: "nothing listens on its port for ssh: it may still be starting; does sshd run " +
			"on %s, and on that port? (--rsh \"ssh -p PORT\" names another)", passing: true},
	{words: []string{"No route to host"},
		advice: "no host answers there: is %s on, and on this network?", passing: true},
	{words: []string{"Network is unreachable"},
		advice: "no interface of this host leads to %s: its address or the routes are wrong"},
	{words: []string{"timed out"},
		advice:  "it does not answer: is %s on, and does a firewall let ssh through?",
		passing: true},
	{words: []string{"booting up"}, advice: "%s is still starting", passing: true},
	{words: []string{"Connection closed by"},
		advice: "its sshd ends the connection: %s may still be starting, or have too many " +
			"beginning at once (MaxStartups)", passing: true},
	{words: []string{"Connection reset by"},
		advice: "its sshd ends the connection: %s may still be starting, or have too many " +
			"beginning at once (MaxStartups)", passing: true},
}

// CauseOf interprets the output of a remote shell, and its exit status. The cause can be known only
// with ssh's own status.
func CauseOf(host string, status int, said string) Cause {
	if status != unreachable {
		return Cause{}
	}
	lines := strings.FieldsFunc(said, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, c := range causes {
		for _, line := range slices.Backward(lines) {
			if slices.ContainsFunc(c.words,
				func(w string) bool { return !strings.Contains(line, w) }) {
				continue
			}
			return Cause{Line: strings.Trim(line, " @\t"),
				Advice: strings.ReplaceAll(c.advice, "%s", host), Passing: c.passing}
		}
	}
	return Cause{}
}

// Text is the whole message.
func (c Cause) Text() string {
	return fmt.Sprintf("it cannot be reached (%s): %s", c.Line,
		c.Advice)
}
