# One line per wish; `make demo` and `make test` do all set-up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export DAGSTER_HOME := $(CURDIR)/dagster_home
export PYTHONWARNINGS := ignore::DeprecationWarning

.PHONY: demo test dev desk check format lock storm bench scale-test clean

demo: $(VENV)/installed   ## import the bundled example, embed, rank, show the top papers and why
	$(BIN)/paper-assets demo

test: $(VENV)/installed   ## every test, on three processes: many of them wait
	$(BIN)/python -m pytest -n 3 --dist worksteal

dev: $(VENV)/installed    ## the Dagster UI on the same data, sensors and schedules running
	$(BIN)/python -m paper_assets.defs.dev -w workspace.yaml

desk: $(VENV)/installed   ## the desk in a browser, on the same data
	$(BIN)/paper-assets desk

check: $(VENV)/installed  ## lint, format, types, definitions
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/dg check defs

format: $(VENV)/installed
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

lock: $(VENV)/installed   ## write constraints.txt anew from what is installed and tested, and requirements.lock (needs uv)
	@command -v uv > /dev/null || { echo "make lock needs uv: pipx install uv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster,postgres]'
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/^torch==\([0-9.]*\).*/torch==\1/' > constraints.txt
	uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --default-index https://pypi.org/simple -c constraints.txt pyproject.toml --all-extras --group dev -o requirements.lock

storm: $(VENV)/installed  ## kills, five processes, a year of feeds, anything as input; an hour (STORM="--seed 7 --part kills")
	$(BIN)/python -m tests.faults.storm $(STORM)

bench: $(VENV)/installed  ## every stage beside a named baseline, in one table; half an hour (BENCH=--short: minutes)
	$(BIN)/python -m benchmarks.table $(BENCH)

scale-test: $(VENV)/installed  ## a Dask cluster, PostgreSQL and a Chroma server on loopback, at full size; ten minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster,postgres]'
	SCALE=full $(BIN)/python -m pytest tests/scale tests/cluster tests/stores/test_vectors_server.py -v --timeout 3600

clean:
	rm -rf $(VENV) data

# torch first and alone: a later package would otherwise pull the build with 3 GB of CUDA.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev
	touch $@
