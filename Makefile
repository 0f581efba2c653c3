# Needs Python >= 3.11 with venv, make and a package index; everything else goes into .venv from the locks.

VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
CLI := $(VENV)/.installed-cli
BENCH := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv lint types imports test demo bench crash simulate fuzz stress kernel package docs site man changelog lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(DEV) ## create .venv with everything that development needs

lint: $(DEV) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## check types, strictly (ARGS="--platform win32" for another system)
	$(BIN)/mypy $(ARGS)

imports: $(DEV) ## check that imports point one way
	$(BIN)/lint-imports --no-cache

test: $(DEV) ## run the tests (ARGS="-k name" passes more to pytest)
	$(BIN)/python -m pytest -n auto $(ARGS)

demo: $(CLI) ## show the store at work on a bundled sample
	$(BIN)/deermem demo

bench: $(BENCH) ## measure speed against its floors (ARGS=…)
	$(BIN)/python -m benchmarks $(ARGS)

crash: $(DEV) ## explore every crash on the simulated disk, and the deep properties
	$(BIN)/python -m pytest -n auto -m crash --whole --hypothesis-profile deep --timeout 0 $(ARGS)

simulate: $(DEV) ## run schedules of several processes (SEEDS="100000", or SEEDS="first count")
	$(BIN)/python -m deermem.testing.simulation $(SEEDS)

fuzz: $(DEV) ## fuzz every parser, guided by coverage (ARGS="seconds target …")
	$(BIN)/python -m tests.fuzz $(ARGS)

stress: $(DEV) ## run the tests that take minutes
	$(BIN)/python -m pytest -m stress --timeout 1800 $(ARGS)

kernel: $(DEV) ## cut real file systems off and compare system calls (as root; strace, xfsprogs, btrfs-progs)
	$(BIN)/python -m pytest -m "stress or not stress" --timeout 1800 -rsP $(ARGS) tests/kernel

package: $(DEV) ## build, and install each extra from the package index (PYTHONS="python3.11 /path/to/python …")
	PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest -m "network or not network" $(ARGS) tests/packaging

docs: $(DEV) ## run every code block of the documents and check their links
	$(BIN)/python -m pytest tests/docs $(ARGS)

site: $(DEV) ## build the documents as a site, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

man: $(DEV) ## write the manual page, build/man/deermem.1
	$(BIN)/python -m tools.manual build/man/deermem.1

changelog: $(DEV) ## show what the next release's changelog will say
	$(BIN)/towncrier build --draft --version next

# The others are resolved under dev.txt, so that one environment can hold them all.
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

lock: $(DEV) ## resolve requirements/*.txt again (ARGS=--upgrade)
	$(LOCK) --all-extras --group dev --output-file requirements/dev.txt $(ARGS)
	$(LOCK) --all-extras --group dev --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt $(ARGS)
	$(LOCK) --extra cli --group build --constraint requirements/dev.txt --output-file requirements/cli.txt $(ARGS)
	$(LOCK) --extra cli --extra server --constraint requirements/dev.txt --output-file requirements/server.txt $(ARGS)

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -path ./.git -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' \) -exec rm -rf {} +

# A candidate counts only if it runs and can make environments: version managers leave shims that cannot.
$(BIN)/python:
	@for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11 python3 python; do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "creating $(VENV) with $$("$$python" --version) ($$python)"; \
	        exec "$$python" -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo "DeerMem needs Python 3.11 or newer with its venv module. Install it, or name one: make PYTHON=/path/to/python" >&2; \
	exit 1

# uv takes seconds where pip takes half a minute, but only an earlier installation can have brought it.
INSTALL = if [ -x $(BIN)/uv ]; then set -- $(BIN)/uv pip install --python $(BIN)/python; \
	else set -- $(BIN)/python -m pip install --disable-pip-version-check; fi; \
	"$$@" --quiet --require-hashes --requirement $(1) && \
	"$$@" --quiet --no-deps --no-build-isolation --editable .

$(DEV): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "installing requirements/dev.txt and deermem into $(VENV)"
	@$(call INSTALL,requirements/dev.txt)
	@touch $@ $(CLI)

$(BENCH): requirements/bench.txt pyproject.toml | $(BIN)/python
	@echo "installing requirements/bench.txt and deermem into $(VENV)"
	@$(call INSTALL,requirements/bench.txt)
	@touch $@ $(DEV) $(CLI)

$(CLI): requirements/cli.txt pyproject.toml | $(BIN)/python
	@echo "installing requirements/cli.txt and deermem into $(VENV)"
	@$(call INSTALL,requirements/cli.txt)
	@touch $@
