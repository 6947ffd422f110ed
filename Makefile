# bcd. `make lab` shows it, `make test` proves it; both set themselves up. `make help` lists the rest.

SHELL      := /bin/sh
.SHELLFLAGS := -eu -c
MAKEFLAGS  += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV   := .venv
BIN    := $(VENV)/bin
# Half as many again as there are processors: the tests wait for real processes, sockets and screens a third of their time.
PYTEST := $(BIN)/pytest -n $(shell n=$$(nproc); n=$$((n + (n + 1) / 2)); echo $$((n < 6 ? n : 6))) --dist=worksteal
PYTHONDIRS := bcd tests tools benchmarks packaging
# More for the command at hand: make lab ARGS=tour, make test ARGS='-k settle'
ARGS   ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A stamp names the tree that it was made in: a tree that was moved or copied gets an environment of its own.
ifneq ($(wildcard $(VENV)/.stamp-*),)
ifneq ($(shell cat $(VENV)/.stamp-runtime 2>/dev/null && $(BIN)/python -c '' 2>&1),$(CURDIR))
$(shell rm -f $(VENV)/.stamp-*)
endif
endif

.PHONY: help lab test test-system check format docs screenshots binary reproduce bench coverage lock clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(VENV)/.stamp-bcd  ## a whole world on this machine: gateway, releases good and bad, a real node
	@$(BIN)/bcd lab $(ARGS)

test: $(VENV)/.stamp-dev  ## the everyday tests, under five minutes on two cores
	@$(PYTEST) $(ARGS)

test-system: $(VENV)/.stamp-dev  ## the slow tests (machines with two systemds among them: as root), and the lab's full tour
	@$(PYTEST) -n 3 -m slow $(ARGS) || [ $$? -eq 5 ]  # 5: there is no slow test
	@$(BIN)/bcd lab tour

check: $(VENV)/.stamp-dev  ## lint, format, types, layers, docs
	@$(BIN)/ruff check --quiet --output-format concise $(PYTHONDIRS)
	@$(BIN)/ruff format --quiet --check $(PYTHONDIRS)
	@$(BIN)/mypy --strict --no-error-summary
	@said=$$($(BIN)/lint-imports --no-logo) || { printf '%s\n' "$$said"; exit 1; }
	@$(BIN)/python tools/make_reference.py --check
	@$(BIN)/python tools/check_docs.py
	@echo "check: all well"

format: $(VENV)/.stamp-dev  ## put the code in its one shape
	@$(BIN)/ruff check --quiet --fix $(PYTHONDIRS) || true
	@$(BIN)/ruff format $(PYTHONDIRS)

docs: $(VENV)/.stamp-dev  ## write the reference pages that are made from the code
	@$(BIN)/python tools/make_reference.py

screenshots: $(VENV)/.stamp-bcd  ## the pictures, from real runs (wants rsvg-convert, pngquant and Fira Code)
	@command -v rsvg-convert pngquant >/dev/null || \
	    { echo "on Debian: apt-get install librsvg2-bin pngquant fonts-firacode" >&2; exit 1; }
	@$(BIN)/python tools/make_screenshots.py --tour

binary: $(VENV)/.stamp-bcd  ## dist/bcd: one executable file with all that bcd needs (wants a C compiler)
	@$(BIN)/python packaging/pack.py $(ARGS)

reproduce: $(VENV)/.stamp-bcd  ## make the binary twice, in two places and two ways, and compare
	@packaging/reproduce.sh $(BIN)/python

bench: $(VENV)/.stamp-bcd  ## what a command and a doctor cost, and an update's memory, beside a bare interpreter
	@$(BIN)/python benchmarks/startup.py $(ARGS)
	@$(BIN)/python benchmarks/doctor.py
	@$(BIN)/python benchmarks/update_memory.py
	@$(BIN)/python benchmarks/console.py

coverage: $(VENV)/.stamp-dev  ## the everyday tests, measured
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

lock:  ## choose the newest allowed versions anew and write requirements/*.txt
	@tools/lock.sh

clean:  ## remove what make and the tools made
	@rm -rf $(VENV) .venv-lock build dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache \
	    .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A changed lock makes the environment anew, so that nothing outlives its line there.
$(VENV)/.stamp-runtime: requirements/build.txt requirements/runtime.txt tools/setup.sh
	@tools/setup.sh $(VENV) runtime

$(VENV)/.stamp-bcd: $(VENV)/.stamp-runtime pyproject.toml
	@tools/setup.sh $(VENV) bcd

$(VENV)/.stamp-dev: $(VENV)/.stamp-bcd requirements/dev.txt
	@tools/setup.sh $(VENV) dev
