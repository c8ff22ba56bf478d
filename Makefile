# libspx: an MPI library with the MPI-5.0 standard ABI. `make help` explains the targets.
#
# What is built, and from what:
#   build/obj/libspxc.a    the C data plane and the shims (capi/{dataplane,bodies,boundary,abi}), compiled here and not by cgo
#   build/lib/libspx.so    package ./capi (Go, cgo) with that archive linked in whole; soname libmpi_abi.so.1
#   build/bin              every program of cmd/, and the names that MPI users expect
#   build/libexec          the measuring program of bench/, for spxctl tune
#   build/include          the public headers
#   build/share            manual pages, completion, module files
# Another build folder: make BUILD=/somewhere/else

SHELL := /bin/bash
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BUILD ?= $(ROOT)/build
override BUILD := $(abspath $(BUILD))
PREFIX ?= /usr/local
GO ?= go
ifeq ($(shell command -v go),)
export PATH := $(PATH):/usr/local/go/bin
endif
CC := gcc
CFLAGS ?= -O3 -g
# One folder a layer (docs/layers.md); what lies in test/ is built by the tests.
C_DIRS := $(shell find $(addprefix $(ROOT)/capi/,dataplane bodies boundary abi) -name test -prune -o -type d -print | LC_ALL=C sort)
# No file says where it was built: the same source gives the same build (make test-same). Debuggers find the sources by "set substitute-path libspx FOLDER".
SAME := -ffile-prefix-map=$(BUILD)=libspx/build -ffile-prefix-map=$(ROOT)=libspx
SPX_CFLAGS := $(SAME) -std=gnu11 -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-strict-aliasing -pthread -Wall -Wextra -Werror=implicit-function-declaration -Werror=frame-larger-than=4608 \
  $(addprefix -I,$(C_DIRS)) -I$(ROOT)/include
# Where it is missing, the library is built without fabrics; when it comes, that is made anew.
FABRIC_H := $(wildcard /usr/include/rdma/fabric.h)
export CGO_ENABLED := 1
export SPX_BUILD := $(BUILD)

C_SRC := $(filter-out %_test.c,$(wildcard $(addsuffix /*.c,$(C_DIRS))))
C_OBJ := $(patsubst $(ROOT)/capi/%.c,$(BUILD)/obj/%.o,$(C_SRC))
C_HDR := $(wildcard $(addsuffix /*.h,$(C_DIRS)) $(ROOT)/include/*.h)
GO_SRC := $(shell find $(ROOT) \( -name .git -o -name build -o -name tests -o -name bench -o -name examples -o -name out \) -prune -o -name '*.go' ! -name '*_test.go' -print) \
  $(wildcard $(ROOT)/go.mod $(ROOT)/go.sum)
EXPORT_MAP := $(ROOT)/capi/zz_export.map
LIB := $(BUILD)/lib/libspx.so
PUBLIC := $(patsubst $(ROOT)/include/%,$(BUILD)/include/%,$(wildcard $(ROOT)/include/*.h))
FORTRAN := $(BUILD)/lib/libspxf.so
ifeq ($(origin FC),default)
FC := gfortran
endif

##@ Building
.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: deps
deps: ## installs what this machine lacks for building and testing (apt-get)
	@$(ROOT)/scripts/deps build test

.PHONY: deps-build
deps-build:
	@$(ROOT)/scripts/deps build

.PHONY: all build
all: build
build: deps-build ## builds everything into build/ (the default)
	@mkdir -p $(BUILD)
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) run -trimpath ./api/gen # the shims call the bodies that are there
	@flock $(BUILD)/.lock $(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST)) BUILD=$(BUILD) build-unlocked

.PHONY: build-unlocked
build-unlocked: $(LIB) headers programs $(BUILD)/libexec/libspx/rows $(BUILD)/bin/spx-iop $(FORTRAN) $(BUILD)/obj/share

.PHONY: generate
generate: ## runs every generator (their output is checked in)
	@cd $(ROOT) && $(GO) generate ./...

.PHONY: status
status: ## what is written and what is missing; the last line counts the functions without a body
	@cd $(ROOT) && $(GO) run ./api/gen -status

.PHONY: install
install: build ## installs into PREFIX (default /usr/local), below DESTDIR if given
	@$(ROOT)/scripts/install $(BUILD) "$(DESTDIR)" "$(PREFIX)"

.PHONY: deb
deb: build ## makes Debian packages of the build: OUT=build/deb
	@$(ROOT)/packaging/debian/build $(BUILD) "$(if $(OUT),$(OUT),$(BUILD)/deb)"

.PHONY: clean
clean: ## removes build/ and the output of tests and benchmarks
	rm -rf $(BUILD) $(ROOT)/bench/out $(ROOT)/tests/conformance/out

# ---- the C part ----------------------------------------------------------------------------------------------------
-include $(C_OBJ:.o=.d)

$(BUILD)/obj/cflags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(CFLAGS) $(SPX_CFLAGS) $(FABRIC_H)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(SPX_CFLAGS) $(FABRIC_H)' >$@

$(BUILD)/obj/%.o: $(ROOT)/capi/%.c $(BUILD)/obj/cflags
	@mkdir -p $(@D)
	@echo "  cc    capi/$*.c"
	@cd $(ROOT) && $(CC) $(SPX_CFLAGS) $(CFLAGS) -MMD -MP -MT $@ -c -o $@ $<

# The list of objects is a prerequisite, so that a source that was removed leaves the archive.
$(BUILD)/obj/objects: FORCE
	@mkdir -p $(@D); echo '$(C_OBJ)' | cmp -s - $@ || echo '$(C_OBJ)' >$@

$(BUILD)/obj/libspxc.a: $(C_OBJ) $(BUILD)/obj/objects
	@rm -f $@
	@ar rcsD $@ $(C_OBJ)

# ---- the library ---------------------------------------------------------------------------------------------------
# Go does not see headers outside the package's own folder: their hash stands in a header that it does see.
HDR_STAMP := $(ROOT)/capi/zz_headers.h
$(HDR_STAMP): $(C_HDR)
	@h="/* $$(cat $(C_HDR) | sha256sum | cut -c1-32): hash of the headers that the preambles include; made by make */"; \
	  echo "$$h" | cmp -s - $@ || echo "$$h" >$@; touch $@

comma := ,
LDLIB := -Wl,--whole-archive $(BUILD)/obj/libspxc.a -Wl,--no-whole-archive -Wl,-soname,libmpi_abi.so.1 \
  -Wl,--version-script=$(EXPORT_MAP) -Wl,-z,nodelete -Wl,-z,defs -Wl,--wrap=pthread_create -Wl,--wrap=pthread_getattr_np -Wl,--compress-debug-sections=zlib -Wl,--build-id=sha1 -lm -lpthread -ldl

# Asynchronous preemption would send SIGURG to the application's threads; reading control groups at start, and again every second, is for servers.
GO_DEFAULTS := -X runtime.godebugDefault=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0

$(LIB): $(BUILD)/obj/libspxc.a $(EXPORT_MAP) $(HDR_STAMP) $(GO_SRC) $(ROOT)/Makefile
	@mkdir -p $(BUILD)/lib
	@echo "  link  lib/libspx.so"
	@cd $(ROOT) && CGO_CFLAGS="-O2 -g $(SAME)" $(GO) build -trimpath -buildmode=c-shared -o $(BUILD)/obj/libspx.so \
	  -ldflags "-buildid= -B none $(GO_DEFAULTS) -extldflags '$(LDLIB)'" ./capi
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) run -trimpath ./capi/sigpatch $(BUILD)/obj/libspx.so
	@rm -f $(BUILD)/obj/libspx.h
	@mv $(BUILD)/obj/libspx.so $@
	@ln -sf libspx.so $(BUILD)/lib/libmpi_abi.so.1
	@ln -sf libmpi_abi.so.1 $(BUILD)/lib/libmpi_abi.so
	@touch $@

# ---- Fortran: routines in C, modules by the compiler FC ---------------------------------------------------------------
FORTRAN_SRC := $(wildcard $(ROOT)/fortran/lib/*)
FORTRAN_OBJ := $(BUILD)/obj/fortran

$(BUILD)/obj/fc: FORCE
	@mkdir -p $(@D); echo '$(FC)' | cmp -s - $@ || echo '$(FC)' >$@

$(FORTRAN): $(FORTRAN_SRC) $(ROOT)/include/mpif.h $(ROOT)/scripts/build-fortran $(BUILD)/obj/fc $(LIB) $(ROOT)/Makefile
	@mkdir -p $(FORTRAN_OBJ) $(BUILD)/include
	@echo "  fc    lib/libspxf.so"
	@cp $(ROOT)/include/mpif.h $(BUILD)/include/mpif.h
	@$(ROOT)/scripts/build-fortran "$(CC)" "$(FC)" $(BUILD)
	@ln -sf libspxf.so $(BUILD)/lib/libmpifort_abi.so.1
	@ln -sf libmpifort_abi.so.1 $(BUILD)/lib/libmpifort_abi.so

# ---- programs, headers ---------------------------------------------------------------------------------------------
# go build relinks only what has changed; the programs need no cgo. spxrun begins by noting which signals are ignored, before the Go runtime does.
.PHONY: programs
programs: $(BUILD)/obj/programs
$(BUILD)/obj/programs: $(GO_SRC) $(wildcard $(ROOT)/cmd/*/*) $(ROOT)/scripts/mpicc $(ROOT)/scripts/install-wrappers $(BUILD)/obj/fc $(ROOT)/Makefile
	@mkdir -p $(BUILD)/bin $(@D)
	@echo "  go    bin/"
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) build -trimpath -o $(BUILD)/bin/ $(filter-out ./cmd/spxrun,$(patsubst $(ROOT)/%,./%,$(wildcard $(ROOT)/cmd/*)))
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-E libspx/launch/process.entry' -o $(BUILD)/bin/ ./cmd/spxrun
	@for l in mpiexec mpirun; do ln -sf spxrun $(BUILD)/bin/$$l; done
	@$(ROOT)/scripts/install-wrappers $(BUILD) "$(FC)"
	@touch $@

ROWS_SRC := $(filter-out %/datatypes.c %/limits.c %/sockets.c,$(wildcard $(ROOT)/bench/programs/*.c))
$(BUILD)/libexec/libspx/rows: $(ROWS_SRC) $(ROOT)/bench/programs/rows.h $(BUILD)/obj/programs $(LIB) | headers
	@mkdir -p $(@D)
	@echo "  cc    libexec/libspx/rows"
	@$(CC) $(SAME) -O2 -pthread -I$(BUILD)/include -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../../lib' -o $@ $(ROWS_SRC) -L$(BUILD)/lib -lmpi_abi -lm

# Manual pages, completion for shells, module files, the description for CMake: of the tables and of the programs.
SHARE_SRC := $(wildcard $(ROOT)/api/*.tsv $(ROOT)/packaging/gen/* $(ROOT)/packaging/manual/* $(ROOT)/packaging/cmake/* $(ROOT)/packaging/modules/* \
  $(ROOT)/packaging/valgrind/* $(ROOT)/fortran/lib/zz_*.f90) $(ROOT)/capi/abi/version.h
$(BUILD)/obj/share: $(SHARE_SRC) $(BUILD)/obj/programs $(ROOT)/Makefile
	@echo "  gen   share/"
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) run -trimpath ./packaging/gen $(BUILD)
	@touch $@

RELAY_SRC := $(wildcard $(ROOT)/cluster/relay/*.c)
$(BUILD)/bin/spx-iop: $(RELAY_SRC) $(ROOT)/cluster/relay/relay.h $(BUILD)/obj/programs $(LIB) | headers
	@echo "  cc    bin/spx-iop"
	@$(CC) $(SAME) -std=gnu11 -O2 -Wall -Wextra -I$(BUILD)/include -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../lib' -o $@ $(RELAY_SRC) -L$(BUILD)/lib -lmpi_abi

.PHONY: headers
headers: $(PUBLIC)
$(BUILD)/include/%: $(ROOT)/include/%
	@mkdir -p $(@D)
	@cp $< $@

##@ Running
.PHONY: demo
demo: build ## a 2-D heat equation on 4 ranks, with a picture
	@$(ROOT)/examples/demo $(BUILD)

.PHONY: site
site: ## the documents as a site, in build/site (needs no network): open build/site/index.html
	@$(ROOT)/scripts/deps site
	@mkdir -p $(BUILD) && cd $(ROOT) && mkdocs build --quiet --strict --site-dir $(BUILD)/site
	@echo "The site: $(BUILD)/site/index.html"

##@ Checking
.PHONY: test
test: deps build ## all tests; the last line says how many passed
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) build -trimpath -o $(BUILD)/obj/testsum ./internal/testsum && CGO_CFLAGS="-O2 -g $(SAME)" $(BUILD)/obj/testsum -o $(BUILD)/test-summary

.PHONY: test-fresh
test-fresh: ## make demo and make test of the last commit on a fresh machine: a minimal Debian 12 with make and Go (debootstrap, as root): TESTS="./tests/sge"
	@$(ROOT)/scripts/deps deb
	@mkdir -p $(BUILD)/obj && cd $(ROOT) && CGO_ENABLED=0 $(GO) build -o $(BUILD)/obj/try ./tests/fresh/try && exec setpriv --pdeathsig TERM $(BUILD)/obj/try -logs $(BUILD)/fresh -tests "$(TESTS)"

.PHONY: test-all
test-all: ## all tests with all their seeds, sizes and settings, of which make test runs each kind (more than 40 minutes)
	@SPX_TESTS=full $(MAKE) --no-print-directory test

.PHONY: test-c
test-c: deps ## the C parts alone under the address, undefined-behaviour and thread sanitizers
	@cd $(ROOT) && $(GO) test -count=1 ./tests/csan

.PHONY: race
race: deps build ## the Go packages under the race detector
	@cd $(ROOT) && GORACE=atexit_sleep_ms=0 $(GO) test -race -timeout 600s $$($(GO) list ./... | grep -v -e /capi$$ -e /tests)

.PHONY: lint
lint: deps ## gofmt, go vet, import rules, file lengths, clang-format, texts
	@cd $(ROOT) && $(GO) vet ./... && $(GO) test -count=1 ./tests/lint

.PHONY: fmt
fmt: deps ## formats Go and C sources in place
	@cd $(ROOT) && $(GO) run ./tests/lint/fmt

.PHONY: conformance
conformance: build ## MPICH's own tests: DIRS="attr pt2pt" LINES="pt2pt/sendrecv1 4" REPEAT=1 CMA=1 HOSTS=0 TRANSPORTS= RESUME=0
	@$(ROOT)/scripts/deps conformance test
	@cd $(ROOT) && $(GO) run ./tests/conformance -dirs "$(DIRS)" -lines "$(LINES)" -repeat $${REPEAT:-1} -cma=$${CMA:-1} -hosts $${HOSTS:-0} -transports "$(TRANSPORTS)" -resume=$${RESUME:-0}

# The sources of others are built with nothing of what this make was given: LIBS means something else to configure.
OTHERS := env -u LIBS -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES

.PHONY: apps
apps: build ## HPCC and NetPIPE, built with our mpicc, with their own checks
	@$(ROOT)/scripts/deps apps
	@cd $(ROOT) && $(OTHERS) SPX_APPS=1 $(GO) test -count=1 -v -timeout 1800s ./tests/apps

.PHONY: libraries
libraries: build ## HDF5, PnetCDF, FFTW, PETSc, OpenCoarrays, PT-Scotch ..., built with our mpicc, with their own parallel tests: LIBS="hdf5 fftw"
	@$(ROOT)/scripts/deps libraries
	@cd $(ROOT) && $(OTHERS) SPX_LIBRARIES="$(if $(LIBS),$(LIBS),all)" $(GO) test -count=1 -v -timeout 7200s ./tests/libraries

.PHONY: test-deb
test-deb: build ## the Debian packages in a clean root (debootstrap, as root): hello world in C and Fortran there
	@$(ROOT)/scripts/deps deb
	@cd $(ROOT) && SPX_DEB=1 $(GO) test -count=1 -v -timeout 1800s ./tests/deb

.PHONY: test-same
test-same: ## builds twice, in two folders, and compares all files byte by byte (some minutes)
	@$(ROOT)/scripts/deps build
	@$(ROOT)/scripts/same

.PHONY: walk
walk: ## a newcomer's walk by README.md alone, in a fresh root (debootstrap, as root), in less than 10 minutes: RECORD=docs/walk.md
	@$(ROOT)/scripts/deps deb
	@cd $(ROOT) && $(GO) run ./tests/walk -record "$(RECORD)"

.PHONY: peers
peers: ## installs MPICH 5 and Open MPI 6 beside us, for interchange tests and benchmarks (root)
	@$(ROOT)/scripts/peers setup

.PHONY: bench
bench: build ## measures libspx against the peers; tables and plots into docs/bench
	@cd $(ROOT) && $(GO) run ./bench && $(GO) run ./bench/cost && $(GO) run ./bench/fortran && $(GO) run ./bench/recovery

.PHONY: scale
scale: build ## 256 and 1,024 ranks on this host run every collective, within 8 GB
	@cd $(ROOT) && SPX_SCALE=1 $(GO) test -count=1 -v -timeout 1800s -run TestScale ./tests/gates

.PHONY: scale-hosts
scale-hosts: build ## 1,024 ranks on 64 hosts (namespaces, as root) lose those of a switch, shrink and grow; systems of up to 16 clusters on 64 hosts; a system on 112 hosts and 8 switches loses those of one and half of those of another (RUN=TestSwitchOfManyIsLost: that alone)
	@cd $(ROOT) && SPX_SCALE=1 $(GO) test -count=1 -v -timeout 1h -run '^($(or $(RUN),TestManyHostsLoseSwitch|TestManyClusters|TestSwitchOfManyIsLost))$$' ./tests/hosts ./tests/systems

.PHONY: topology
topology: build ## networks (namespaces, as root), found from measured times alone: 20 of 8 hosts and 3 switches; RUNS=50 times 32 hosts on 8 switches with busy processors, right or unsure; MANY=5 of 112 hosts on 8 switches
	@cd $(ROOT) && SPX_TOPOLOGY_RUNS=20 $(GO) test -count=1 -v -timeout 1h -run '^TestTopologyIsFound$$' ./tests/hosts
	@cd $(ROOT) && SPX_TOPOLOGY_RUNS=$(or $(RUNS),50) $(GO) test -count=1 -v -timeout 0 -run '^TestTopologyUnderLoad$$' ./tests/hosts
	@cd $(ROOT) && SPX_TOPOLOGY_RUNS=$(or $(MANY),5) $(GO) test -count=1 -v -timeout 0 -run '^TestTopologyOfManyHosts$$' ./tests/hosts

.PHONY: soak
soak: build ## MESSAGES=100000000 messages over TCP while connections come and go, in three settings: none lost, doubled, out of order
	@cd $(ROOT) && SPX_SOAK_MESSAGES=$${MESSAGES:-100000000} $(GO) test -count=1 -timeout 0 -v -run 'TestSoak' ./tests/gates

.PHONY: storm
storm: build ## (as root) for SECONDS=300 systems drawn from seeds, to which all happens that their policies are about, on up to six hosts, as a whole or one cluster after another (SEED=1 repeats one); then the radar of examples/ while its processes and masters die, on one host and on three: nothing missing, nothing twice
	@cd $(ROOT) && SPX_STORM_SECONDS=$(or $(SECONDS),300) SPX_STORM_SEED=$(SEED) $(GO) test -count=1 -timeout 0 -v -run 'TestStorm' ./tests/systems
	@$(if $(SEED),,cd $(ROOT) && SPX_GATE_SECONDS=$(or $(SECONDS),300) $(GO) test -count=1 -timeout 0 -v -run 'TestRadarSurvives' ./tests/systems)

.PHONY: attack
attack: build ## a job is called FRAMES=1000000 times by hellos that are nearly right, from the same host and from another one (as root): each is counted as what it is, and the job goes on
	@cd $(ROOT) && SPX_ATTACK_FRAMES=$(or $(FRAMES),1000000) $(GO) test -count=1 -timeout 0 -v -run 'TestMutants' ./tests/attack

.PHONY: sim
sim: ## the failure machines under the seeded simulator, at most LIMIT long (0: as long as it takes): SCHEDULES=100000 SEED=1 LIMIT=60s
	@cd $(ROOT) && CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -v -run 'TestJobs|TestDeath|TestScenarios|TestMulticast|TestSequence' ./sim -schedules $${SCHEDULES:-100000} -seed $${SEED:-1} -limit $${LIMIT:-60s}

.PHONY: model
model: ## Spin checks the model of the agreement exhaustively, for three and four members and any of their deaths (1 GB of memory)
	@$(ROOT)/scripts/deps model
	@cd $(ROOT) && $(GO) test -count=1 -v -timeout 3600s ./tests/model -all

.PHONY: fuzz
fuzz: ## every Go fuzz target for FUZZTIME each (default 20s)
	@cd $(ROOT) && $(GO) run ./internal/fuzzall -time $${FUZZTIME:-20s}

.PHONY: fuzz-records
fuzz-records: deps ## RECORDS=100000000 records of all kinds that no process would send, under the sanitizers (12,000 a second and processor)
	@cd $(ROOT) && SPX_RECORDS=$${RECORDS:-100000000} $(GO) test -count=1 -v -timeout 0 ./tests/csan -run '^TestC$$/^net_fuzz$$'

.PHONY: FORCE
FORCE:
