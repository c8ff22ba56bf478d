#include "textflag.h"

// What rt_sigaction fills in: handler, flags, restorer, mask.
GLOBL action<>(SB), NOPTR, $32

// What prlimit64 fills in: the limit that counts, and the hard one.
GLOBL limit<>(SB), NOPTR, $16

// entry is where the program begins, with the kernel's stack: ·ignoredAtStart gets the signals that are ignored, limits of memory
// are looked at (limits.go), then the Go runtime begins.
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
	MOVD $261, R8 // prlimit64(0, RLIMIT_AS, NULL, &limit)
	MOVD ZR, R0
	MOVD $9, R1
	MOVD ZR, R2
	MOVD $limit<>(SB), R3
	SVC
	CBNZ R0, data
	MOVD limit<>(SB), R4
	MOVD ·neededAddresses(SB), R5
	MOVD ·tooFewAddresses+0(SB), R1
	MOVD ·tooFewAddresses+8(SB), R2
	CMP  R5, R4
	BLO  refuse
data:
	MOVD $261, R8 // prlimit64(0, RLIMIT_DATA, NULL, &limit)
	MOVD ZR, R0
	MOVD $2, R1
	MOVD ZR, R2
	MOVD $limit<>(SB), R3
	SVC
	CBNZ R0, begin
	MOVD limit<>(SB), R4
	MOVD ·neededData(SB), R5
	MOVD ·tooLittleData+0(SB), R1
	MOVD ·tooLittleData+8(SB), R2
	CMP  R5, R4
	BLO  refuse
	MOVD $174, R8 // getuid: root has no limit of processes
	SVC
	CBZ  R0, begin
	MOVD $261, R8 // prlimit64(0, RLIMIT_NPROC, NULL, &limit)
	MOVD ZR, R0
	MOVD $6, R1
	MOVD ZR, R2
	MOVD $limit<>(SB), R3
	SVC
	CBNZ R0, begin
	MOVD limit<>(SB), R4
	MOVD ·neededThreads(SB), R5
	MOVD ·tooFewThreads+0(SB), R1
	MOVD ·tooFewThreads+8(SB), R2
	CMP  R5, R4
	BLO  refuse
begin:
	JMP  _rt0_arm64_linux(SB)
refuse:
	MOVD $64, R8 // write(2, text, its length)
	MOVD $2, R0
	SVC
	MOVD $94, R8 // exit_group(1)
	MOVD $1, R0
	SVC
