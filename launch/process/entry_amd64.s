#include "textflag.h"

// What rt_sigaction fills in: handler, flags, restorer, mask.
GLOBL action<>(SB), NOPTR, $32

// entry is where the program begins, with the kernel's stack: ·ignoredAtStart gets the signals that are ignored, then the Go runtime begins.
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
	JMP  _rt0_amd64_linux(SB)
