package main

// #include <sys/auxv.h>
import "C"

import "os"

// isSecure is set if the program has more rights than the user who started it (set-id,
// capabilities).
var isSecure = C.getauxval(C.AT_SECURE) != 0

// getenv is os.Getenv. In programs that have more rights than their user all variables are empty,
// as with secure_getenv(3): they are that user's word, and name files, descriptors and processes.
func getenv(name string) string {
	if isSecure {
		return ""
	}
	return os.Getenv(name)
}
