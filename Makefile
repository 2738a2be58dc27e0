# Cinnabar. 'make help' lists the targets.
SHELL := /bin/bash
GO ?= go
BIN := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -X main.version=$(VERSION)
GOLANGCI_VERSION := $(shell cat .golangci-lint-version)
GOLANGCI := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
DEADCODE := $(GO) run golang.org/x/tools/cmd/deadcode@v0.49.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME ?= 30s
PKGS ?= ./...
BENCH ?= .
BENCHCOUNT ?= 1
LOADDB ?= {db}
LOADFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start the hub with its own login on https://localhost:8443 and http://localhost:8080
	@exec $(BIN)/hub dev $(ARGS)

.PHONY: build
build: ## build bin/hub and bin/authz
	@$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/hub ./cmd/authz

.PHONY: test
test: ## run all tests; says what was left out and why
	@$(GO) run ./test/report -timeout 20m $(TESTFLAGS) $(PKGS)

.PHONY: race
race: ## run all tests with the race detector, shuffled
	@$(GO) run ./test/report -race -shuffle=on -count=1 -timeout 20m $(TESTFLAGS) $(PKGS)

.PHONY: e2e
e2e: ## run the end-to-end and browser tests alone
	@$(GO) run ./test/report -count=1 ./test/...

.PHONY: interop
interop: test/interop/node_modules ## run the tests with other people's clients (needs npm)
	@$(GO) run ./test/report -count=1 ./test/interop/...

test/interop/node_modules: test/interop/package-lock.json
	@npm ci --prefix test/interop --no-audit --no-fund && touch $@

.PHONY: conformance
conformance: ## run the conformance suite against the hub in all its configurations; prints one table (needs nginx)
	@mkdir -p $(BIN); rm -f $(BIN)/conformance.txt; \
	  $(GO) test -count=1 -timeout 1h ./test/conformance/ownhub -all -table $(CURDIR)/$(BIN)/conformance.txt; code=$$?; [ ! -f $(BIN)/conformance.txt ] || cat $(BIN)/conformance.txt; exit $$code

.PHONY: check
check: fmt-check lint race cross dead vuln ## everything that must hold before a change is merged

.PHONY: fmt
fmt: ## format the code
	@$(GOLANGCI) fmt ./...

.PHONY: fmt-check
fmt-check: ## fail when code is not formatted
	@$(GOLANGCI) fmt --diff ./...

.PHONY: lint
lint: ## run the linters (.golangci.yml)
	@$(GOLANGCI) run --allow-parallel-runners ./...

.PHONY: cross
cross: ## vet and build for linux, darwin and windows
	@for os in linux darwin windows; do echo "$$os"; \
	  CGO_ENABLED=0 GOOS=$$os $(GO) vet ./... && CGO_ENABLED=0 GOOS=$$os $(GO) build -o /dev/null ./cmd/hub && CGO_ENABLED=0 GOOS=$$os $(GO) build -o /dev/null ./cmd/authz || exit 1; done

.PHONY: dead
dead: ## fail when a function can be reached from no binary and no test
	@out=$$($(DEADCODE) -test ./...); if [ -n "$$out" ]; then echo "$$out"; exit 1; fi

.PHONY: vuln
vuln: ## look for known vulnerabilities in what the binaries use (needs the network)
	@$(GOVULNCHECK) ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@for f in $$(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for t in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$f/*_test.go | sed 's/^func //'); do \
	    echo "$$f $$t"; $(GO) test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) $$f || exit 1; done; done

.PHONY: conformance-faults
conformance-faults: ## write down anew which checks each fault of the reference hub turns red (takes a while)
	@$(GO) test -count=1 -timeout 2h -run '^TestEveryFaultTurnsItsCheckRed$$' ./test/conformance/proof -update

.PHONY: bench
bench: ## run the Go benchmarks (BENCH=regexp BENCHCOUNT=10, for benchstat)
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) -timeout 2h ./internal/... ./test/load

.PHONY: load
load: build ## put a small load on the hub (LOADDB=- for the memory driver, LOADFLAGS='-scenario fan-out -n 1000'); docs/performance.md
	@$(GO) build -o $(BIN)/ ./test/load ./test/load/bench-hub
	@$(BIN)/load -start '$(BIN)/bench-hub {port} {dir} {key} {alg} {issuer} {audience} $(LOADDB)' \
	  -scenario all -n 200 -duration 2s -history 10000 $(LOADFLAGS)

.PHONY: docs
docs: ## write configs/*.yaml and the golden files anew from the code
	@$(GO) test ./internal/config ./internal/demo ./internal/as/ashttp ./internal/cli -update

.PHONY: clean
clean: ## remove what was built
	@rm -rf $(BIN)
