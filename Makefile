# Each target does its own set-up: on a new machine `make score` or `make test` is all it takes.
# Needed beforehand: Python 3.11 or newer with pip and venv, make, and a way to the Python package index.
PYTHON ?= python3
METHOD ?= averaging
BIN := .venv/bin
READY := .venv/ready
# What is compiled to machine code, once, so that nobody waits for it at the first score.
COMPILED := .venv/compiled
KERNELS := neuco_core/scoring/kernel.py neuco_core/tables/csv_kernel.py neuco_core/plugins/compiled.py
MODELS ?= .venv-models
PANDAS2 := .venv-pandas2

.DEFAULT_GOAL := help
.PHONY: help score test test-all test-core test-models test-pandas2 test-axe lint format docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

score: $(COMPILED)  ## score a method on the embedded tasks, offline (METHOD=averaging)
	@mkdir -p build/registry && cp -R registry/suites build/registry/
	@NEUCO_REGISTRY=build/registry $(BIN)/neuco score --method $(METHOD) --suite embedded $(ARGS)

# Files in their order: by default those with few tests come last, and some of these take minutes on one core. Three at
# a time even on two cores: a third of the time tests wait for servers, browsers and sandboxes.
PYTEST := $(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=25

test: $(COMPILED) .venv/parts  ## run the quick and sufficient tests (ARGS="-k sandbox" for some)
	@$(PYTEST) -m "not slow" $(ARGS)

test-all: $(COMPILED) .venv/parts  ## run the quick and the slow tests; test-models, test-pandas2 and test-axe are others
	@$(PYTEST) $(ARGS)

test-core: $(COMPILED) .venv/parts  ## run the quick tests of the core in a copy of the tree without neuco_extensions
	@$(BIN)/python -m tests.without_extensions -n 3 --dist loadfile $(ARGS)

test-models: $(MODELS)/ready  ## run the tests that need TorchGeo, TerraTorch, timm and Hugging Face (2 GB, an environment of its own)
	@$(MODELS)/bin/python -m pytest -q tests/models $(ARGS)

test-pandas2: $(READY) $(PANDAS2)/ready  ## run the tests of GEO-Bench's files with pandas 2 beside pandas 3
	@$(BIN)/python -m pytest -q tests/geobench/test_validate.py $(ARGS)

test-axe: $(COMPILED) .venv/parts build/axe/package.json  ## check that everybody can use the pages: axe-core, which needs npm
	@$(BIN)/python -m pytest -q tests/site/test_axe.py tests/challenge/test_serve_page.py $(ARGS)

lint: $(READY)  ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy neuco neuco_core neuco_tasks neuco_methods neuco_extensions

format: $(READY)  ## put the code into its standard form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY)  ## build the documentation with the boards beside it; open build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/neuco leaderboard site --out build/site/leaderboard

clean:  ## remove what set-up made
	rm -rf .venv .venv-models $(PANDAS2) build dist .mypy_cache .pytest_cache .ruff_cache

# Written last, so that a set-up that was cut short is taken up again; pip keeps what it has already downloaded.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("neuco needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.11 …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "setting up .venv (once; about two minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(COMPILED): $(READY) $(KERNELS)
	@$(BIN)/python -m neuco_core.scoring.warm
	@touch $@

build/axe/package.json:
	@npm install --silent --ignore-scripts --prefix build/axe axe-core@4.14.0

.venv/parts: $(READY) ci/parts.sh
	@sh ci/parts.sh
	@touch $@

# Their packages may not go into .venv: methods and tests there must do with neuco's own.
$(MODELS)/ready: pyproject.toml constraints.txt tests/models/requirements.txt
	@test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	@$(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r tests/models/requirements.txt
	@touch $@

# Neuco itself needs pandas 3; what reads submissions needs msgspec alone, and gives the same beside either pandas.
$(PANDAS2)/ready:
	@$(PYTHON) -m venv $(PANDAS2)
	@$(PANDAS2)/bin/python -m pip install --quiet --disable-pip-version-check 'pandas>=2.2,<3' 'msgspec>=0.22'
	@touch $@
