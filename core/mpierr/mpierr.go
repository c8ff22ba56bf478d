// Package mpierr carries MPI error classes through the engine: what went wrong, as a class of the
// standard (MPI-5.0, section 9.4) and a sentence for the user. It raises nothing and has no
// communicator: capi/ turns such an error into a call of the right error handler.
package mpierr

import (
	"errors"
	"fmt"
)

// Class is an MPI error class by its value in the standard ABI (MPI-5.0, section 21.3).
type Class int

// The classes that the engine raises.
const (
	Buffer    Class = 1
	Count     Class = 2
	Type      Class = 3
	Tag       Class = 4
	Comm      Class = 5
	Rank      Class = 6
	Request   Class = 7
	Root      Class = 8
	Group     Class = 9
	Op        Class = 10
	Topology  Class = 11
	Dims      Class = 12
	Arg       Class = 13
	Unknown   Class = 14
	Truncate  Class = 15
	Other     Class = 16
	Intern    Class = 17
	InfoKey   Class = 31
	InfoNoKey Class = 32
	InfoValue Class = 33
	Info      Class = 34
	Keyval    Class = 36
	Name      Class = 38
	NoMem     Class = 39
	Port      Class = 43
	Service   Class = 51
	Spawn     Class = 53
	Win       Class = 56
)

// The classes of chapter 12, one-sided communication.
const (
	Base      Class = 24
	RMAAttach Class = 46
	RMAShared Class = 49
	RMASync   Class = 50
	Size      Class = 52
	RMAFlavor Class = 57
)

// The classes of user-level failure mitigation (include/mpi-ext.h).
const (
	ProcFailed        Class = 16385
	ProcFailedPending Class = 16386
	Revoked           Class = 16387
)

// The classes of chapter 15, I/O.
const (
	Access               Class = 20
	Amode                Class = 21
	BadFile              Class = 23
	Conversion           Class = 25
	Disp                 Class = 26
	DupDatarep           Class = 27
	FileExists           Class = 28
	FileInUse            Class = 29
	File                 Class = 30
	IO                   Class = 35
	NotSame              Class = 40
	NoSpace              Class = 41
	NoSuchFile           Class = 42
	Quota                Class = 44
	ReadOnly             Class = 45
	UnsupportedDatarep   Class = 54
	UnsupportedOperation Class = 55
)

// Error is an error with its MPI class. Text describes the error, with the value, and a remedy.
type Error struct {
	Class Class
	Text  string
}

func (e *Error) Error() string { return e.Text }

// New makes an error of a class.
func New(c Class, format string, args ...any) error {
	return &Error{Class: c, Text: fmt.Sprintf(format, args...)}
}

// ClassOf returns the class of err: 0 for nil, Intern for an error that carries none.
func ClassOf(err error) Class {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Intern
}
