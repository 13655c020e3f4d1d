# The few commands of this project. Each brings what it needs: a virtual environment in .venv, made once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= auto
INSTALL := python -m pip install --quiet --disable-pip-version-check --no-compile
SCHEDULERS := airflow dagster
PROOFS := dbt sqlmesh dlt

# Python keeps what it has compiled, also where the environment says not to: the tests start it a thousand times.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-oldest schedulers pgbouncer chromium lint lab format bench examples grocery flights lineitem tpch proofs $(SCHEDULERS) $(PROOFS) clean

help: ## Show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "reslice needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(INSTALL) --upgrade "pip>=25.1"
	$(BIN)/$(INSTALL) --constraint constraints.txt --editable . --group dev
	@touch $@

demo: $(READY) ## The main job on embedded DuckDB: the accident, the cure, run again (10 seconds)
	@$(BIN)/reslice demo --into reslice-demo

test: ## Lint, then every test (seeded samples of the long ones)
	@$(MAKE) --no-print-directory -j2 lint schedulers tpch pgbouncer chromium dbt
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: ## Every test with its full counts, then on the oldest supported DuckDB
	@$(MAKE) --no-print-directory -j2 lint schedulers tpch pgbouncer chromium $(PROOFS)
	$(BIN)/python -m pytest -n $(WORKERS)
	$(MAKE) test-oldest

test-oldest: $(READY) ## The tests of the engine on the oldest supported DuckDB
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/$(INSTALL) --upgrade "pip>=25.1"
	$(VENV)-oldest/bin/$(INSTALL) --editable . --group dev "duckdb==1.5.6" pytz
	$(VENV)-oldest/bin/python -m pytest -n $(WORKERS) -m "not slow" -k "not postgres" tests/unit tests/conformance tests/stateful tests/crash tests/races

schedulers: $(SCHEDULERS) ## A real Airflow and a real Dagster, each in an environment of its own, for their tests

dbt: ## A real dbt, in an environment of its own, for the proofs and their tests
$(SCHEDULERS) $(PROOFS):
	@$(MAKE) --no-print-directory .venv-$@/.ready \
	  || echo "note: no environment for $@ could be made; its tests are skipped (with CI=true they fail)"

.venv-%/.ready: pyproject.toml constraints.txt examples/schedulers/%/requirements.txt examples/schedulers/%/constraints.txt
	@rm -f $@
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/$(INSTALL) --constraint constraints.txt \
	  --constraint examples/schedulers/$*/constraints.txt --requirement examples/schedulers/$*/requirements.txt --editable .
	@touch $@

.venv-%/.ready: examples/proofs/%/requirements.txt examples/proofs/%/constraints.txt
	@rm -f $@
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/$(INSTALL) \
	  --constraint examples/proofs/$*/constraints.txt --requirement examples/proofs/$*/requirements.txt
	@touch $@

tpch: ## The TPC-H generator, in an environment of its own, for the lineitem example and its tests
	@$(MAKE) --no-print-directory .venv-tpch/.ready \
	  || echo "note: no environment for TPC-H could be made; its tests are skipped (with CI=true they fail)"

.venv-tpch/.ready: examples/lineitem/requirements.txt
	@rm -f $@
	$(PYTHON) -m venv .venv-tpch
	.venv-tpch/bin/$(INSTALL) --no-deps --requirement $<
	@touch $@

pgbouncer: ## A pgbouncer, which root installs, for the tests of connections through a proxy
	@command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer \
	  || { [ "$$(id -u)" = 0 ] && { apt-get update -qq; apt-get install -qq -y pgbouncer; } >/dev/null 2>&1; } \
	  || echo "note: pgbouncer could not be installed; its tests are skipped (with CI=true they fail)"

chromium: | pgbouncer  # apt does one thing at a time
chromium: ## A Chromium, which root installs, for the tests of the pages in a browser
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && { apt-get update -qq; apt-get install -qq -y --no-install-recommends chromium; } >/dev/null 2>&1; } \
	  || echo "note: no Chromium could be installed; the browser tests are skipped (with CI=true they fail)"

lint: $(READY) ## Format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

lab: $(READY) ## Make the page of `reslice lab` and its figures afresh, with a real DuckDB
	$(BIN)/python -m reslice.lab.build

format: $(READY) ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## Measure, side by side with hand-written SQL, and write docs/performance.md
	$(BIN)/python -m bench.bench
	$(BIN)/python -m bench.postgres
	$(BIN)/python -m bench.audit

examples: grocery flights lineitem ## The main job on three tables of real size, each checked by plain Python

grocery: $(READY) ## A year of grocery sales by hour, day and month, corrected and run again
	$(BIN)/python -m examples.grocery

flights: $(READY) ## A year of flights, corrected and run again, on a table without a key
	$(BIN)/python -m examples.flights

lineitem: $(READY) .venv-tpch/.ready ## Six million order lines of TPC-H, corrected and run again, in exact decimals
	$(BIN)/python -m examples.lineitem

proofs: $(READY) $(PROOFS) ## Run a day twice with dbt, SQLMesh, dlt and SQL by hand, and write docs/proofs.md
	$(BIN)/python -m examples.proofs

clean: ## Remove what these commands made
	rm -rf $(VENV) $(VENV)-oldest $(SCHEDULERS:%=$(VENV)-%) $(PROOFS:%=$(VENV)-%) $(VENV)-tpch reslice-demo grocery flights lineitem .pytest_cache .mypy_cache .ruff_cache .hypothesis
