module libspx

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/ianlancetaylor/cgosymbolizer v0.0.0-20250410214317-b8ecc8b6bbe6
	golang.org/x/sys v0.49.0
)
