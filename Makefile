PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

ifndef EWSG_DATA
ifneq ($(wildcard ../shared/data),)
export EWSG_DATA := $(abspath ../shared/data)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help .venv demo test guard bench lint types readme constraints clean

help:  ## show this list
	@awk -F ':.*## ' '/^[.a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv: $(VENV)/.installed  ## create the environment, pinned by constraints.txt

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## run the demonstration
	$(BIN)/ewsg demo

test: $(VENV)/.installed  ## run every test
	$(BIN)/pytest -n 2 --dist worksteal -q --durations 20

guard: $(VENV)/.installed  ## fail if the loop has become slow (under a minute)
	$(BIN)/python benchmarks/guard.py

bench: guard  ## time the loop against its peers on one core, its growth, and the start
	$(BIN)/python benchmarks/speed.py --json benchmarks/build/speed.json
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/startup.py

lint: $(VENV)/.installed  ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed  ## check types
	$(BIN)/pyright

readme: $(VENV)/.installed  ## run the first example of README.md as printed
	MPLBACKEND=Agg $(BIN)/python tools/readme_example.py README.md

constraints:  ## pin what a fresh resolve of pyproject.toml gives today
	rm -rf $(VENV)-resolve
	$(PYTHON) -m venv --upgrade-deps $(VENV)-resolve
	$(VENV)-resolve/bin/pip install -q -e '.[dev]'
	{ echo '# Every package of `pip install -e ".[dev]"`, exactly. Refreshed by `make constraints`.'; \
	  $(VENV)-resolve/bin/pip freeze --all --exclude-editable --exclude pip; } > constraints.txt
	rm -rf $(VENV)-resolve

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) $(VENV)-resolve .pytest_cache .ruff_cache build dist ewsg-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
