package service

import "fmt"

// OutputName is the name of the file that has the output of a job with --detach, or of one whose
// spxrun was lost.
func OutputName(job uint64) string { return fmt.Sprintf("spx-%016x.out", job) }

// EndLine is the last line of such a file.
func EndLine(job uint64, status int) string {
	return fmt.Sprintf("spxrun: job %016x has ended, exit status %d\n", job, status)
}
