# What a developer runs. CI runs .ci/run, which is `make lint` and `make test`.

# Passed to go test as they stand: make test TESTFLAGS='-run TestBrowser ./internal/e2e'
TESTFLAGS ?= -shuffle=on ./...
SOAK ?= 20

.DEFAULT_GOAL := help
.PHONY: help run test lint fmt generate bench fuzz soak clients

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

run: ## start Graft on an embedded Postgres and print the link to open
	go run ./cmd/graft serve

test: ## install what the tests need where missing, then run all of them and every fuzz target for 10 s
	internal/e2e/setup
	go run ./internal/testrun -cluster -fuzz 10s -- -race -timeout 20m $(TESTFLAGS)

lint: ## what CI checks before the tests: formatting, generated code, modules, vet, linters
	.ci/lint

fmt: ## format every Go file
	go run mvdan.cc/gofumpt@v0.12.0 -w $$(git ls-files -co --exclude-standard '*.go' ':!*_templ.go')

generate: ## write the generated files anew
	go tool templ generate -path web
	go generate ./...

bench: ## measure, without the race detector
	internal/e2e/setup
	go test -run '^$$' -bench . -benchmem -timeout 60m ./...

fuzz: ## run every fuzz target for 5 minutes
	internal/e2e/setup
	go run ./internal/testrun -cluster -fuzz 5m -- -run '^Fuzz' -timeout 20m ./...

soak: ## the tests many times over, with the counts that CI cannot afford
	internal/e2e/setup
	go run ./internal/testrun -cluster -- -race -shuffle=on -tags soak -count $(SOAK) -timeout 12h ./...

clients: ## the vendors' own programs against a gateway, signed in and with a token: Claude Code, Codex
	internal/e2e/setup vendors
	go run ./internal/testrun -cluster -- -count 1 -tags vendors -run '^TestVendor' -timeout 20m ./internal/e2e
