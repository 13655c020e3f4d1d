# The few commands of this project. Each brings what it needs: a virtual environment in .venv, made once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-oldest lint format bench grocery clean

help: ## Show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "reslice needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group dev
	@touch $@

demo: $(READY) ## The main job on embedded DuckDB: the accident, the cure, run again (10 seconds)
	@$(BIN)/reslice demo --into reslice-demo

test: lint ## Lint, then every test (seeded samples of the long ones)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: lint ## Every test with its full counts, then on the oldest supported DuckDB
	$(BIN)/python -m pytest -n $(WORKERS)
	$(MAKE) test-oldest

test-oldest: $(READY) ## The tests of the engine on the oldest supported DuckDB
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group dev "duckdb==1.5.6" pytz
	$(VENV)-oldest/bin/python -m pytest -n $(WORKERS) -m "not slow" tests/unit tests/conformance tests/stateful tests/crash tests/races

lint: $(READY) ## Format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## Measure, side by side with hand-written SQL, and write docs/performance.md
	$(BIN)/python -m bench.bench

grocery: $(READY) ## The main job on real input: a year of grocery sales, corrected and run again
	$(BIN)/python examples/grocery/grocery.py

clean: ## Remove what these commands made
	rm -rf $(VENV) $(VENV)-oldest reslice-demo grocery .pytest_cache .mypy_cache .ruff_cache .hypothesis
