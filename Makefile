# Everything a contributor runs. Needs Python 3.11 or newer and make; all else goes into .venv.
# Quiet unless something fails: what a check prints is shown only when it fails.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test check format-check lint imports types pytest coverage format lock docs law demo bench clean

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
CODE := src tests
quietly = @out=$$($(1) 2>&1) || { printf '%s\n' "$$out" >&2; exit 1; }

help:  ## list what there is
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: .venv/installed  ## make the environment in .venv (every target below does so by itself)

.venv/locked: requirements/dev.txt
	@test -n "$(PYTHON)" || { echo 'ploti needs Python 3.11 or newer: make PYTHON=... names one' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip -qq --disable-pip-version-check install --require-hashes -r requirements/dev.txt
	@touch $@

.venv/installed: .venv/locked pyproject.toml
	@$(BIN)/python -m pip -qq --disable-pip-version-check install --no-build-isolation --no-deps -e .
	@touch $@

test: check pytest  ## every check and every test: what CI runs

check: format-check lint imports types  ## format, lint, imports and types, without the tests

format-check: .venv/installed
	$(call quietly,$(BIN)/ruff format --check $(CODE))

lint: .venv/installed
	$(call quietly,$(BIN)/ruff check $(CODE))

imports: .venv/installed
	$(call quietly,$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter)

types: .venv/installed
	$(call quietly,$(BIN)/mypy)
	$(call quietly,$(BIN)/basedpyright)

pytest: .venv/installed  ## the tests alone; ARGS='-k name' narrows them
	@$(BIN)/pytest -q -n auto --dist worksteal $(ARGS)

coverage: .venv/installed  ## the tests, with what they did not reach
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q $(ARGS)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report

format: .venv/installed  ## put the code into the one format, and mend what ruff can
	@$(BIN)/ruff check -q --fix-only $(CODE)
	@$(BIN)/ruff format -q $(CODE)

lock: .venv/locked  ## take the newest releases that pyproject.toml allows into requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --no-emit-index-url \
		--fork-strategy fewest --python-version 3.11 --all-extras --group dev \
		--output-file requirements/dev.txt pyproject.toml

docs: .venv/installed  ## write the pages of reference and the index out of the code
	@$(BIN)/python -m tests.docs.generate

law: .venv/installed  ## the law of the log under writers that are killed, for SECONDS=300
	@LAW_SECONDS=$(or $(SECONDS),300) $(BIN)/pytest -q -s -k killed $(ARGS) tests/integration/test_log_law.py

demo: .venv/installed  ## the whole thing at work, in a minute
	@$(BIN)/ploti demo

bench: .venv/installed  ## the benchmarks, as ratios to a floor (minutes; never part of the tests)
	@$(BIN)/python -m tests.bench

clean:  ## remove the environment and every cache
	@rm -rf .venv .cache .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
