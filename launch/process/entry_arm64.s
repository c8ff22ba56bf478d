#include "textflag.h"

// What rt_sigaction fills in: handler, flags, restorer, mask.
GLOBL action<>(SB), NOPTR, $32

// entry is where the program begins, with the kernel's stack: ·ignoredAtStart gets the signals that are ignored, then the Go runtime begins.
TEXT ·entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVD $1, R9  // the signal
	MOVD ZR, R10 // the set
next:
	MOVD $134, R8 // rt_sigaction(signal, NULL, &action, 8)
	MOVD R9, R0
	MOVD ZR, R1
	MOVD $action<>(SB), R2
	MOVD $8, R3
	SVC
	CBNZ R0, other
	MOVD $action<>(SB), R2
	MOVD (R2), R4
	CMP  $1, R4 // SIG_IGN
	BNE  other
	SUB  $1, R9, R5
	MOVD $1, R6
	LSL  R5, R6, R6
	ORR  R6, R10, R10
other:
	ADD  $1, R9, R9
	CMP  $64, R9
	BLE  next
	MOVD R10, ·ignoredAtStart(SB)
	JMP  _rt0_arm64_linux(SB)
