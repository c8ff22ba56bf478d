// Package system starts and watches systems of clusters (MPI/SPx, section 3): it makes jobs of
// system files, which package cluster/config reads.
//
// It owns what spxrun --system and spxctl system do beside the command line; what the masters
// decide is in cluster/manage, and how processes are started is the agents' matter (launch/agent).
package system

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"libspx/cluster/config"
)

// Load reads a system file. The error has a line for each mistake, as FILE:LINE:COLUMN: TEXT.
func Load(file string) (*config.System, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read the system file: %w", file, plainError(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, config.MaxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read the system file: %w", file, plainError(err))
	}
	s, err := config.Parse(text, nameOf(file))
	var problems config.Problems
	if errors.As(err, &problems) {
		return nil, &FileError{file, problems}
	}
	return s, err
}

// FileError is all that is wrong in a system file.
type FileError struct {
	File     string
	Problems config.Problems
}

func (e *FileError) Error() string {
	return e.File + ":" + strings.ReplaceAll(e.Problems.Error(), "\n", "\n"+e.File+":")
}

func plainError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// nameOf makes a name of a file's.
func nameOf(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			c) {
			return c
		}
		return '_'
	}, base[:min(len(base), 64)])
}
