SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Time for each fuzz target.
FUZZTIME ?= 5s
# Which packages make fuzz takes: I/N for each N-th one, from number I.
FUZZPART ?= 0/1
# How long make sim searches for a seed that fails.
SIMTIME ?= 1h
# Where it keeps the seeds that reached something new, which it plays first.
SIMCORPUS ?= .corpus
# How many seeds make coverage plays.
SEEDS ?= 1000
# How often make race runs each test.
COUNT ?= 5
# The Envoy RLS cases and their runner.
RLS_DIR ?= ../shared/rls

# The tools live in a module of their own and never touch our requirements.
TOOLS := internal/tools
# What a release needs has a module of its own, too.
RELEASE := $(TOOLS)/release
# So does the test of the manifests.
KUBERNETES := deploy/kubernetes/test
# And the proxies that the tests build.
GATEWAYS := internal/e2e/gateways/modules
# And the parsers of the files of gateways that no test runs.
FILES := internal/e2e/gateways/files
# And Envoy Gateway.
ENVOYGATEWAY := internal/e2e/envoygateway/modules
# Packages that explore many states or take hours of virtual time: short under
# the race detector, complete without.
LONG := cmd/rld control daemon limits quota/agent quota/epoch quota/transfer sim sim/explore sim/grid sim/scenario \
	sim/swarm sticky/lease sticky/quorum wire
# Those of them without goroutines of their own: the race detector sees their
# code in the tests of package daemon and of the simulator. make race has all.
SEQUENTIAL := control limits quota/agent quota/epoch quota/transfer sim/scenario sim/swarm sticky/lease sticky/quorum wire
# A package that only reads the repository: without the race detector.
READ := internal/docs
STATICCHECK := go tool -modfile=$(TOOLS)/go.mod staticcheck
GOFUMPT := go tool -modfile=$(TOOLS)/go.mod gofumpt
GOIMPORTS := go tool -modfile=$(TOOLS)/go.mod goimports -local github.com/georld/rld

.PHONY: help run build test e2e race sim coverage fuzz bench scale lint format generate release vulnerabilities clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start three regions of three daemons, with a network between them and traffic
	@exec bin/rld demo

build: ## build bin/rld
	go build -trimpath -o bin/rld ./cmd/rld

test: lint ## all checks, then all tests, those of concurrent code under the race detector
	go -C $(TOOLS) test -count=1 ./... # reads what go test does not know of
	go -C $(RELEASE) test -count=1 ./... # the licences of all modules
	go test -vet=off $(LONG:%=./%) $(READ:%=./%) # lint has vetted all
	@echo "Under the race detector: the packages that take long are short."
	$(TOOLS)/race -vet=off -timeout=20m -short $(patsubst %,./%,$(filter-out $(SEQUENTIAL),$(LONG)))
	$(TOOLS)/race -vet=off $$(go list ./... | grep -vxF "$$(printf 'github.com/georld/rld/%s\n' $(LONG) $(READ) internal/lint)")

e2e: e2e-cluster e2e-gateways e2e-kubernetes ## real daemons under faults, behind proxies and from manifests, then the Envoy RLS cases of RLS_DIR
	@if [[ ! -f "$(RLS_DIR)/cases.json" ]]; then \
		echo "e2e: skipped: there are no Envoy RLS cases in $(RLS_DIR); name their folder with RLS_DIR=..."; \
		exit 0; \
	fi; \
	tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	cp -R "$(RLS_DIR)" "$$tmp/rls"; chmod -R u+w "$$tmp/rls"; \
	echo "e2e: building rld and the runner"; \
	go build -o "$$tmp/bin/rld" ./cmd/rld; \
	go -C "$$tmp/rls" build -o "$$tmp/bin/rlsrunner" .; \
	export PATH="$$tmp/bin:$$PATH"; cd "$$tmp/rls"; \
	listen='--grpc-addr 127.0.0.1:{grpc_port} --http-addr 127.0.0.1:{http_port} --admin-addr 127.0.0.1:{debug_port}'; \
	replay() { rlsrunner -start "rld serve --limits {dir} $$listen" -check 'rld limits check {dir}' "$$@"; }; \
	echo "e2e: the cases with the default settings"; \
	replay -skip-tags quirk,denied-hits-count; \
	echo "e2e: the cases of charging as upstream does, with RLD_CHARGE_DENIED=true"; \
	RLD_CHARGE_DENIED=true replay -tags denied-hits-count

.PHONY: e2e-long
e2e-long: ## ten real daemons through all that operators do, a witness, attacks, a newer Caddy, Envoy Gateway: 30 minutes, as root
	RLD_E2E_LONG=1 go test -tags e2e -count=1 -timeout 25m -v -run 'Operations|Replaced|Witness|Away|Attacks' ./internal/e2e
	go -C $(FILES) mod tidy -diff
	go -C $(FILES) vet ./...
	go -C $(FILES) test -count=1 -timeout 5m -v ./...
	go -C $(GATEWAYS) mod tidy -diff
	RLD_E2E_LONG=1 go test -tags e2e -count=1 -timeout 30m -v -run Modules ./internal/e2e/gateways
	go -C $(ENVOYGATEWAY) mod tidy -diff
	RLD_E2E_LONG=1 go test -tags e2e -count=1 -timeout 40m -v ./internal/e2e/envoygateway

.PHONY: e2e-cluster
e2e-cluster:
	@echo "e2e: clusters under load: killed, frozen, restarted and, as root, partitioned"
	go test -tags e2e -count=1 -timeout 15m -v ./internal/e2e
	@echo "e2e: the demo and the simulator agree; strict limits hold while owners die"
	go test -tags e2e -count=1 -timeout 8m -v -run 'Simulator|Strict' ./demo

race: ## run every test COUNT times under the race detector
	$(TOOLS)/race -count=$(COUNT) ./...

.PHONY: e2e-gateways
e2e-gateways:
	@echo "e2e: nginx, Caddy and HAProxy of Debian in front of rld, with the files of examples/gateways; Envoy where there is one"
	go test -tags e2e -count=1 -timeout 8m -v ./internal/e2e/gateways

# It has go.mod and the checks that lint leaves out, so that make test does not
# need the modules of Kubernetes.
.PHONY: e2e-kubernetes
e2e-kubernetes:
	@echo "e2e: the manifests of deploy/kubernetes, and real daemons that they start"
	go -C $(KUBERNETES) mod tidy -diff
	go -C $(KUBERNETES) vet ./...
	go -C $(KUBERNETES) test -count=1 -timeout 5m -v ./...

sim: build ## simulate random clusters and their failures for SIMTIME
	bin/rld sim swarm --for $(SIMTIME) --seed "$$(date +%s)" --keep-going --corpus $(SIMCORPUS)

coverage: ## list the statements of the core that SEEDS seeds of the swarm do not reach
	go run ./internal/coverage -runs $(SEEDS) -out coverage.txt

fuzz: ## run every fuzz target for FUZZTIME
	$(TOOLS)/fuzz $(FUZZTIME) $(FUZZPART)

bench: ## measure rld and print the table of its numbers
	go run ./internal/bench

scale: ## simulate regions of 1 to 30 daemons and print what replication costs
	go run ./internal/scale

lint: ## check format, vet, staticcheck, our own rules, generated code and go.mod
	@echo "gofumpt -l, goimports -l"; go=$$(find . -name '*.go' ! -name '*.pb.go'); \
	files=$$($(GOFUMPT) -l $$go; $(GOIMPORTS) -l $$go); \
	if [[ -n "$$files" ]]; then echo "not formatted; run make format for:" >&2; echo "$$files" >&2; exit 1; fi
	go vet -tags e2e ./...
	go -C $(TOOLS) vet ./...
	go -C $(RELEASE) vet ./...
	$(STATICCHECK) -tags e2e ./...
	go run -C $(TOOLS) ./protogen -check
	go mod tidy -diff
	go -C $(TOOLS) mod tidy -diff
	go test -count=1 -vet=off ./internal/lint # names, comments, imports

format: ## format the Go code
	@go=$$(find . -name '*.go' ! -name '*.pb.go'); $(GOFUMPT) -w $$go; $(GOIMPORTS) -w $$go

generate: ## generate the Go code of proto/ and the tables of docs/
	go generate ./proto/...
	go test ./internal/docs -run 'Settings|Limits|Metrics|API|Architecture' -rewrite

release: ## static binaries, their modules (CycloneDX), licences and checksums, in dist
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; go build -C $(RELEASE) -o "$$tmp/release" . && "$$tmp/release" -out dist

vulnerabilities: build ## look the modules of bin/rld up in the Go vulnerability database (needs vuln.go.dev)
	go tool -modfile=$(RELEASE)/go.mod govulncheck -mode binary bin/rld

clean: ## remove the files that the targets above create
	rm -rf bin dist coverage.out coverage.html coverage.txt
	find . -name '*.test' -type f -delete
