// Gen writes the page of messages: gen ROOT FILE, ROOT being the repository's folder. go generate ./internal/messages calls it.
package main

import (
	"fmt"
	"os"

	"libspx/internal/messages"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen ROOT FILE")
		os.Exit(2)
	}
	text, err := messages.Page(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(text), 0o666)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
