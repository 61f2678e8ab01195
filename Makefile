# Dragoman. `make help` lists the commands.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Randomized tests: 1 runs a tenth of their full counts, 10 the whole.
DRAGOMAN_TEST_SCALE ?= 1
export DRAGOMAN_TEST_SCALE

NEXTEST := $(shell command -v cargo-nextest 2>/dev/null)

.PHONY: cross help run test test-full lint bench build build-cost record dist mutants soak figures quality fuzz site

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: ## Start a chat in this terminal (without one: ask one question)
	@scripts/run

test: ## Check format, lints, structure and run all tests
	@scripts/test

test-full: ## The same with the full counts of randomized tests
	@DRAGOMAN_TEST_SCALE=10 scripts/test

lint: ## Format and lints only
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets -- -D warnings

bench: ## Measure; prints a table with ratios
	@scripts/bench

build: ## The whole program as it is published: target/release/dragoman
	@scripts/setup build
	@cargo build --release -p dragoman

mutants: ## Try whether the tests notice 100 small mistakes in the engine (slow; installs cargo-mutants)
	@scripts/mutants

build-cost: ## Measure what each feature costs (size, crates, build time), against xtask/budgets.txt (long)
	@scripts/build-cost

dist: ## Pack the program for users: make dist VERSION=0.1.0 (docs/install.md)
	@scripts/dist/dist

cross: ## Check, build and try the program for other systems (docs/platforms.md; long)
	@scripts/cross

soak: ## Fifty chats, five servers and faults for ten minutes: memory, processes, facts
	@scripts/soak

fuzz: ## Fuzz the parsers, guided by coverage (installs cargo-fuzz; FUZZ_SECONDS each)
	@scripts/fuzz

figures: ## Run the tests behind docs/figures.md at full size and write the page (long)
	@scripts/figures

quality: ## Measure how well the agent works, offline, and write docs/quality.md (long)
	@scripts/quality

site: ## The documentation as a static site: target/site/index.html
	@cargo run --quiet -p dragoman-xtask -- site

record: ## Make the recording in the README anew
	@scripts/record
