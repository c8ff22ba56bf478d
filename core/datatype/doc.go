// Package datatype is the engine's knowledge of MPI datatypes (MPI-5.0, chapter 5): the
// constructors with their bounds and sizes, the record of how a type was made (envelope and
// contents), and the compilation of a type to a layout, the flat program that the packer in C runs.
//
// Duties:
//  1. A Type never changes once made. It may be used by any number of goroutines, and lives as long
//     as it is referred to, so that a type made of a freed one goes on working.
//  2. All counts, displacements and sizes are int64. A size, extent or displacement that does not
//     fit is an error, never a wrapped number.
//  3. Bounds follow the formulas of section 5.1.6: markers (set by Resized, Subarray, Darray)
//     stick, and override; without them the extent is rounded up to the strictest alignment.
//
// It must not know handles, C memory or communicators: capi/ gives the predefined types in, as
// Basic, and copies Images out.
package datatype
