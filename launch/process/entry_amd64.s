#include "textflag.h"

// What rt_sigaction fills in: handler, flags, restorer, mask.
GLOBL action<>(SB), NOPTR, $32

// What getrlimit fills in: the limit that counts, and the hard one.
GLOBL limit<>(SB), NOPTR, $16

// entry is where the program begins, with the kernel's stack: ·ignoredAtStart gets the signals that are ignored, limits of memory
// are looked at (limits.go), then the Go runtime begins.
TEXT ·entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ $1, R8 // the signal
	XORQ R9, R9 // the set
next:
	MOVQ $13, AX // rt_sigaction(signal, NULL, &action, 8)
	MOVQ R8, DI
	XORQ SI, SI
	LEAQ action<>(SB), DX
	MOVQ $8, R10
	SYSCALL
	TESTQ AX, AX
	JNE  other
	CMPQ action<>(SB), $1 // SIG_IGN
	JNE  other
	LEAQ -1(R8), CX
	MOVQ $1, AX
	SHLQ CX, AX
	ORQ  AX, R9
other:
	INCQ R8
	CMPQ R8, $64
	JLE  next
	MOVQ R9, ·ignoredAtStart(SB)
	MOVQ $97, AX // getrlimit(RLIMIT_AS, &limit)
	MOVQ $9, DI
	LEAQ limit<>(SB), SI
	SYSCALL
	MOVQ ·tooFewAddresses+0(SB), SI
	MOVQ ·tooFewAddresses+8(SB), DX
	MOVQ ·neededAddresses(SB), R8
	TESTQ AX, AX
	JNE  data
	CMPQ limit<>(SB), R8
	JCS  refuse
data:
	MOVQ $97, AX // getrlimit(RLIMIT_DATA, &limit)
	MOVQ $2, DI
	LEAQ limit<>(SB), SI
	SYSCALL
	MOVQ ·tooLittleData+0(SB), SI
	MOVQ ·tooLittleData+8(SB), DX
	MOVQ ·neededData(SB), R8
	TESTQ AX, AX
	JNE  begin
	CMPQ limit<>(SB), R8
	JCS  refuse
	MOVQ $102, AX // getuid: root has no limit of processes
	SYSCALL
	TESTQ AX, AX
	JEQ  begin
	MOVQ $97, AX // getrlimit(RLIMIT_NPROC, &limit)
	MOVQ $6, DI
	LEAQ limit<>(SB), SI
	SYSCALL
	MOVQ ·tooFewThreads+0(SB), SI
	MOVQ ·tooFewThreads+8(SB), DX
	MOVQ ·neededThreads(SB), R8
	TESTQ AX, AX
	JNE  begin
	CMPQ limit<>(SB), R8
	JCS  refuse
begin:
	JMP  _rt0_amd64_linux(SB)
refuse:
	MOVQ $1, AX // write(2, text, its length)
	MOVQ $2, DI
	SYSCALL
	MOVQ $231, AX // exit_group(1)
	MOVQ $1, DI
	SYSCALL
