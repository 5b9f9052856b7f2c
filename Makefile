# Set-up needs only Python 3.11+, make and a package index. PYTHON chooses the interpreter.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
WORKSPACE ?= $(or $(AWM_WORKSPACE),awm-workspace)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: install install-all studio test lint bench bench-harness bench-train pictures snapshots clean

install: $(VENV)/.installed  ## set up .venv: the studio and the developer's tools, without torch
install-all: $(VENV)/.installed-all  ## and what concepts, exports and training need (torch and others: 2.4 GB)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no python3 found: install Python 3.11 or newer, or set PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: set PYTHON=/path/to/python3.11 (or newer)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: $(PYTHON) has no venv: install it (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) '.[dev]'
	@touch $@

$(VENV)/.installed-all: $(VENV)/.installed
	$(PIP) '.[dev,hf,concepts,pictures,train]'
	@touch $@

studio: install  ## set everything up, make 24 environments if there are none, and open the studio on them
	@test -e "$(WORKSPACE)/catalog.db" || $(BIN)/awm-studio synth --offline --count 24 --seed 7 --workspace "$(WORKSPACE)" >/dev/null
	@$(BIN)/awm-studio --workspace "$(WORKSPACE)"

test: install-all  ## set everything up and run the tests
	$(BIN)/pytest -n auto

lint: install-all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ty check
	$(BIN)/lint-imports

bench: install-all  ## measure, on this machine, what the README claims
	$(BIN)/pytest tests/benchmarks -m benchmark -s --ignore tests/benchmarks/test_bench_train.py

bench-harness: install-all  ## run the public benchmarks' smoke presets in their own harnesses (downloads up to 2.3 GB)
	AWM_BENCH_HARNESS=1 $(BIN)/pytest tests/benchmarks/test_bench_harness.py -m benchmark -s

bench-train: install-all  ## does it learn? a warm start, three seeds of GRPO and a control: 9 minutes on 2 cores
	$(BIN)/pytest tests/benchmarks/test_bench_train.py -m benchmark -s

pictures: install-all  ## make the README's pictures from the studio itself
	$(BIN)/python -m tests.studio.pictures docs/pictures

snapshots: install-all  ## accept how the studio's screens look now as how they should look
	$(BIN)/pytest tests/studio/test_snapshots*.py --snapshot-update

clean:
	rm -rf $(VENV) build dist *.egg-info .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
