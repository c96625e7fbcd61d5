# Kubistro. The two commands to know: `make run` and `make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One set of build flags everywhere: other flags compile Kubernetes a second time.
export CGO_ENABLED := 0

KUBE := v1.37.2
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# What client and server say of themselves; the tag's date stands for the build's, so that equal sources give equal programs.
STAMP := $(foreach package,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
  -X $(package).gitVersion=$(KUBE) -X $(package).gitMajor=1 -X $(package).gitMinor=37 -X $(package).gitCommit=unknown \
  -X $(package).gitTreeState=archive -X $(package).buildDate=2026-10-27T12:01:04Z)
LDFLAGS := -s -w $(STAMP)

ADDR ?= 127.0.0.1:8080
ASSETS := web/assets
ASSET_SOURCES := $(shell find $(ASSETS)/src -type f 2>/dev/null) $(wildcard $(ASSETS)/*.json $(ASSETS)/*.mjs)

export KUBISTRO_LABSERVER := $(CURDIR)/bin/labserver
export KUBISTRO_CLUSTERHOST := $(CURDIR)/bin/clusterhost

.PHONY: help
help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: run
run: build ## build what is missing and serve on http://localhost:8080
	@bin/labserver serve --addr $(ADDR)

.PHONY: build
build: generate assets labserver clusterhost kind-agent ## bin/labserver, bin/clusterhost and bin/kind-agent

.PHONY: labserver
labserver: generate assets labserver-only

# Without npm: for builds that bring the bundles along.
.PHONY: labserver-only
labserver-only:
	@$(call say,building bin/labserver (2 to 3 minutes the first time, then seconds))
	@go build -ldflags '$(LDFLAGS) -X main.version=$(VERSION)' -o bin/labserver ./cmd/labserver

.PHONY: clusterhost
clusterhost:
	@$(call say,building bin/clusterhost: it holds Kubernetes $(KUBE) itself$(,) about 10 minutes the first time$(,) then seconds)
	@go build -ldflags '$(LDFLAGS)' -o bin/clusterhost ./cmd/clusterhost

.PHONY: host
host: ## bin/kubistro-host, the Ingress and Gateway controller as a static program
	@go build -ldflags '-s -w' -o bin/kubistro-host ./cmd/kubistro-host

# It runs inside kind's nodes, which are Linux whatever this machine is.
.PHONY: kind-agent
kind-agent:
	@GOOS=linux go build -ldflags '-s -w' -o bin/kind-agent ./cmd/kind-agent

.PHONY: generate
generate: ## Go code from templ components
	@go tool templ generate -path web >/dev/null 2>&1 || go tool templ generate -path web

.PHONY: assets
assets: $(ASSETS)/dist/manifest.json ## scripts and styles of the page

$(ASSETS)/node_modules/.package-lock.json: $(ASSETS)/package-lock.json
	@$(call say,fetching the page's libraries with npm)
	@npm ci --prefix $(ASSETS) --no-fund --no-audit --loglevel=error
	@touch $@

$(ASSETS)/dist/manifest.json: $(ASSETS)/node_modules/.package-lock.json $(ASSET_SOURCES)
	@$(call say,bundling the page's scripts and styles)
	@npm run --silent build --prefix $(ASSETS)

.PHONY: test
test: build chromium ## Go, TypeScript and browser tests
	@$(call say,checking and testing TypeScript)
	@npm run --silent check --prefix $(ASSETS)
	@npm run --silent test --prefix $(ASSETS) -- --test-reporter=tap > bin/typescript.tap || { cat bin/typescript.tap; exit 1; }
	@$(call say,testing Go: units$(,) real control planes$(,) headless Chromium)
	@# One package at a time: several measure what a learner feels, and share two cores with a browser.
	@go test -json -vet=off -count=1 -p 1 -timeout 25m ./... | go run ./hack/testreport -tap bin/typescript.tap

.PHONY: verify
verify: build ## every exercise and lesson of every course, as learners would do them; VERIFY=restaurant/1 for some
	@bin/labserver verify --workers 4 --report bin/verify.xml $(VERIFY)

.PHONY: chromium
chromium:
	@hack/chromium

.PHONY: vet
vet: ## go vet and staticcheck
	@hack/lint

.PHONY: format
format: ## gofmt and templ fmt
	@gofmt -w $$(git ls-files '*.go')
	@go tool templ fmt web/ui >/dev/null

.PHONY: bench
bench: build ## measure and print the table of docs/benchmarks.md
	@go run ./hack/bench -labserver bin/labserver

# The suite's programs. They hold Kubernetes as clusterhost does, and are built once: nothing of ours is in them.
E2E := hack/conformance/e2e
E2E_PROGRAMS := bin/e2e.test bin/ginkgo bin/kubectl

bin/e2e.test: $(E2E)/go.mod
	@$(call say,building Kubernetes' own tests: about 7 minutes the first time)
	@cd $(E2E) && go test -c -vet=off -ldflags '$(LDFLAGS)' -o $(CURDIR)/$@ k8s.io/kubernetes/test/e2e
bin/ginkgo: $(E2E)/go.mod
	@cd $(E2E) && go build -ldflags '-s -w' -o $(CURDIR)/$@ github.com/onsi/ginkgo/v2/ginkgo
bin/kubectl: $(E2E)/go.mod
	@cd $(E2E) && go build -ldflags '$(LDFLAGS)' -o $(CURDIR)/$@ k8s.io/kubernetes/cmd/kubectl

.PHONY: conformance
conformance: clusterhost $(E2E_PROGRAMS) ## Kubernetes' own [Conformance] tests; CONFORMANCE='-focus REGEXP' for some
	@go run ./hack/conformance $(CONFORMANCE)

.PHONY: node-image
node-image: ## the image of kind's nodes from source, for machines that reach no registry
	@go run ./hack/node-image

.PHONY: pantry-images
pantry-images: ## bin/pantry.tar, the lessons' images for kind; STAND_INS=1 adds public names for offline use
	@GOOS=linux go build -ldflags '-s -w' -o bin/pantry ./cmd/pantry
	@go run ./hack/pantry-images $(if $(STAND_INS),-stand-ins) -program bin/pantry -o bin/pantry.tar

# The node image comes from its cache or is built; Docker is the one that runs here or one of our own.
define on-kind
image=$$(go run ./hack/node-image); go build -o bin/hack-dockerd ./hack/dockerd; \
  KUBISTRO_KIND_IMAGE="$${image%% *}" nice bin/hack-dockerd -load "$$image" --
endef

# Other exercises every day. Each of the tests' own limits is for a busy machine.
.PHONY: test-kind
test-kind verify-kind: STAND_INS := 1 # machines with a node image from source reach no registry
test-kind: kind-agent pantry-images labserver clusterhost chromium ## tests on real kind clusters; as root, the first time half an hour
	@$(on-kind) bash -euc 'go test -vet=off -count=1 -p 1 -timeout 90m -v ./hack/node-image ./internal/cluster/kind; \
	  go test -vet=off -count=1 -timeout 60m -v -run OnKind ./web/browsertest; \
	  bin/labserver verify --driver kind --kind-image "$$KUBISTRO_KIND_IMAGE" --workers 1 --brief --seed $$(date +%-j) --within 8m'

.PHONY: verify-kind
verify-kind: kind-agent pantry-images labserver ## every exercise on real kind clusters; VERIFY=restaurant/1 for some
	@$(on-kind) bash -euc 'bin/labserver verify --driver kind --kind-image "$$KUBISTRO_KIND_IMAGE" --workers 1 $(VERIFY)'

.PHONY: fidelity
fidelity: clusterhost kind-agent bin/kubectl ## the same scenarios on kind and embedded, and what differs; FIDELITY='-only REGEXP' for some
	@$(MAKE) --no-print-directory pantry-images STAND_INS=1
	@image=$$(go run ./hack/node-image); go build -o bin/hack-dockerd ./hack/dockerd; go build -o bin/hack-fidelity ./hack/fidelity; \
	  KUBISTRO_KIND_IMAGE="$${image%% *}" nice bin/hack-dockerd -load "$$image" -- bin/hack-fidelity $(FIDELITY)

.PHONY: fidelity-record
fidelity-record: clusterhost bin/kubectl ## the scenarios on embedded, against what kind showed when it was recorded
	@go run ./hack/fidelity -clusters record,embedded $(FIDELITY)

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin $(ASSETS)/node_modules && find $(ASSETS)/dist -type f ! -name .keep -delete

, := ,
say = printf '\033[1m==> %s\033[0m\n' "$(1)" >&2
