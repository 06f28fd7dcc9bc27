# Every target sets up .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv installs the same versions in a fraction of the time.
INSTALL := $(if $(shell command -v uv),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check) -c constraints.txt
export DAGSTER_HOME := $(CURDIR)/dagster_home
export PYTHONWARNINGS := ignore::DeprecationWarning
# Compiled modules are kept, also where the environment forbids it: otherwise each process compiles all of them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test quick nightly dev desk docs check format lock storm bench scale-test llm-test clean

demo: $(VENV)/installed   ## import the bundled example, embed and rank it, show the top papers and why
	$(BIN)/paper-assets demo

test: $(VENV)/installed   ## run every test, on four processes because many of them wait
	$(BIN)/python -m pytest -n 4 --dist worksteal

# What a developer runs while working: no whole processes, no browser, no daemon, no cluster, no recorded data.
QUICK := tests -m 'not shared_data' --ignore tests/end_to_end --ignore tests/faults --ignore tests/page --ignore tests/defs --ignore tests/mcp \
  --ignore tests/cluster --ignore tests/scale --ignore tests/test_wheel.py --ignore tests/test_benchmarks.py

quick: $(VENV)/installed  ## run the tests that need no other process and no recorded data, in a few minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK)

nightly: $(VENV)/installed ## run the tests of generated examples with ten times as many, other ones each time
	$(BIN)/python -m pytest -n 4 --dist worksteal -m hypothesis --hypothesis-profile=nightly

dev: $(VENV)/installed    ## open the Dagster UI on the same data, with sensors and schedules running
	$(BIN)/python -m paper_assets.interfaces.supervisor

desk: $(VENV)/installed   ## open the page in a browser, on the same data
	$(BIN)/paper-assets desk

check: $(VENV)/installed  ## check lint, format, types and Dagster definitions
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/dg check defs

format: $(VENV)/installed ## fix what lint and format can fix
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

docs: $(VENV)/installed   ## build the documentation as a site in site/; fails at a warning or a broken link
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: $(VENV)/installed   ## write constraints.txt and requirements.lock from what is installed and tested (needs uv)
	@command -v uv > /dev/null || { echo "make lock needs uv: pipx install uv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster,postgres]' --group docs
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/^torch==\([0-9.]*\).*/torch==\1/' > constraints.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links -c constraints.txt pyproject.toml --all-extras --group dev --group docs \
	  -o requirements.lock

storm: $(VENV)/installed  ## run the fault-injection test: kills, concurrent processes, random input; an hour (STORM="--seed 7 --part kills")
	$(BIN)/python -m tests.faults.storm $(STORM)

bench: $(VENV)/installed  ## compare every stage with its baseline in one table; half an hour (BENCH=--short: minutes)
	$(BIN)/python -m benchmarks.table $(BENCH)

scale-test: $(VENV)/installed  ## test a Dask cluster, PostgreSQL and a Chroma server on loopback at full size; ten minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster,postgres]'
	SCALE=full $(BIN)/python -m pytest tests/scale tests/cluster tests/stores/test_vectors_server.py -v --timeout 3600

LLM := .llm-server
llm-test: $(VENV)/installed $(LLM)/installed  ## ask a real model server (llama.cpp, random weights) from every part that uses one; the first time it is built: minutes
	LLM_SERVER_PYTHON=$(CURDIR)/$(LLM)/bin/python $(BIN)/python -m pytest -n 0 tests/llm_server

$(LLM)/installed:
	$(VENV)/bin/python -m venv $(LLM)
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check 'llama-cpp-python[server]==0.3.36' gguf==0.19.0
	touch $@

clean:
	rm -rf $(VENV) $(LLM) data site

# torch first, in a separate step: otherwise another package would select the build with 3 GB of CUDA.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11")'
	if command -v uv > /dev/null; then rm -rf $(VENV) && uv venv --quiet --seed --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(INSTALL) torch
	$(INSTALL) -e . --group dev
	touch $@
