// Package fabric decides over which fabric of libfabric a process communicates: with which provider
// and which domain (a device, or a network interface) of those that the library offers on its host.
//
// The package is pure: what the library offers, the settings, and the address by which the other
// processes reach this one are arguments.
package fabric
