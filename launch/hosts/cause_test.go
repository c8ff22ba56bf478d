package hosts

import (
	"strings"
	"testing"
)

// The standard error and status of OpenSSH 9.2, and the resulting causes.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		said    string
		advice  string // a part of it; empty: the cause is not known
		passing bool
	}{
		{"ssh: Could not resolve hostname n7: Temporary failure in name resolution\r\n",
			"getent hosts n7", true},
		{"ssh: Could not resolve hostname n7: Name or service not known\r\n",
			"no host of that name", false},
		{"ssh: connect to host n7 port 22: Connection refused\r\n", "does sshd run on n7", true},
		{"ssh: connect to host n7 port 22: Connection timed out\r\n", "firewall", true},
		{"Connection timed out during banner exchange\r\nConnection to 10.0.0.7 port 22 timed " +
			"out\r\n", "firewall", true},
		{"ssh: connect to host n7 port 22: No route to host\r\n", "is n7 on", true},
		{"ssh: connect to host n7 port 22: Network is unreachable\r\n", "routes", false},
		{"kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by " +
			"10.0.0.7 port 22\r\n", "MaxStartups", true},
		{"kex_exchange_identification: Connection closed by remote host\r\nConnection closed by " +
			"10.0.0.7 port 22\r\n", "MaxStartups", true},
		{"\"System is booting up. Unprivileged users are not permitted to log in " +
			"yet.\"\r\nConnection closed by 10.0.0.7 port 22\r\n", "still starting", true},
		{"me@n7: Permission denied (publickey,password).\r\n", "ssh-copy-id n7", false},
		{"Received disconnect from 10.0.0.7 port 22:2: Too many authentication " +
			"failures\r\nDisconnected from 10.0.0.7 port 22\r\n", "IdentitiesOnly", false},
		{"No ED25519 host key is known for n7 and you have requested strict checking.\r\nHost " +
			"key verification failed.\r\n", "ssh n7 true", false},
		{"@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     " +
			"@\r\n@@@@@@@@\r\nHost key verification failed.\r\n", "ssh-keygen -R n7", false},
		{"a message of the day\r\n", "", false},
		{"", "", false},
	} {
		got := CauseOf("n7", 255, c.said)
		if got.Passing != c.passing || (got.Line == "") != (c.advice == "") ||
			!strings.Contains(got.Advice, c.advice) || !strings.Contains(c.said, got.Line) ||
			strings.Contains(got.Text(), "%s") {
			t.Errorf("%q: %+v", c.said, got)
		}
		if got := CauseOf("n7", 1, c.said); got != (Cause{}) {
			t.Errorf("%q, with a status that is the program's: %+v", c.said, got)
		}
	}
}
