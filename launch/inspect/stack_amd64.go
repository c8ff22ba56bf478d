package inspect

import "golang.org/x/sys/unix"

// registersFrom takes those that ptrace gives.
func registersFrom(v *unix.PtraceRegs) *registers {
	r := &registers{}
	for n, x := range [regsAll]uint64{v.Rax, v.Rdx, v.Rcx, v.Rbx, v.Rsi, v.Rdi, v.Rbp, v.Rsp, v.R8,
		v.R9, v.R10, v.R11, v.R12, v.R13, v.R14, v.R15, v.Rip} {
		r.set(n, x)
	}
	return r
}
