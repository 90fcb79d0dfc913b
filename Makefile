# Every target works in every world: `make test WORLD=oldest`, or newest. tools/worlds.py says what they are.
WORLD ?= default
WORLDS := default oldest newest docs
SUFFIX := $(if $(filter-out default,$(WORLD)),-$(WORLD))
PYTHON ?= $(shell python3 tools/worlds.py python $(WORLD))
VENV := .venv$(SUFFIX)
CONSTRAINTS := constraints$(SUFFIX).txt
EXTRA := $(if $(filter docs,$(WORLD)),docs,$(if $(SUFFIX),test,dev))
BIN := $(VENV)/bin

ifndef EWSG_DATA
ifneq ($(wildcard ../shared/data),)
export EWSG_DATA := $(abspath ../shared/data)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help .venv demo test test-all test-types test-x64 test-slow slow-list doctor guard bench lint types readme docs site dist wheel try-wheel constraints clean

help:  ## show this list
	@awk -F ':.*## ' '/^[.a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv: $(VENV)/.installed  ## create the environment, pinned by constraints.txt

# Modules are compiled when they are imported: compiling all of them is half the work of an installation.
$(VENV)/.installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --no-compile -c $(CONSTRAINTS) -e '.[$(EXTRA)]'
	@touch $@

demo: $(VENV)/.installed  ## run the demonstration
	$(BIN)/ewsg demo

PYTEST := $(BIN)/pytest -n 2 --dist loadfile -q --durations 20
CHECKED := --jaxtyping-packages 'ewsg,beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))'

# Long chains and the canary are compiled as for users, all other tests without optimisation, which is sooner.
OPTIMISED := tests/statistical tests/cli/test_canary.py
EVERY = EWSG_OPTIMISED=1 $(PYTEST) $(OPTIMISED) $(1) && $(PYTEST) tests $(OPTIMISED:%=--ignore=%) $(1)
QUICK := $(PYTEST) tests -m 'not slow'

test: $(VENV)/.installed  ## run the tests that take a few seconds each
	$(QUICK)

test-all: $(VENV)/.installed  ## run every test
	$(call EVERY)

test-types: $(VENV)/.installed  ## run the quick tests with every annotation of the package checked
	$(QUICK) $(CHECKED)

test-x64: $(VENV)/.installed  ## run the quick tests of what computes in float64
	JAX_ENABLE_X64=1 $(QUICK) $(patsubst %,--ignore=tests/%,cli compliance datasets lab)

guard: $(VENV)/.installed  ## fail if the loop has become slow (under a minute)
	$(BIN)/python benchmarks/guard.py

slow-list: $(VENV)/.installed  ## measure every test, and list those of more than 0.6 CPU seconds in tests/slow.txt
	rm -f build/cpu.txt && mkdir -p build
	$(call EVERY,--measure $(abspath build/cpu.txt))
	awk '$$1 > 0.6 { sub(/^[^ ]+ /, ""); print }' build/cpu.txt | LC_ALL=C sort > tests/slow.txt

test-slow: $(VENV)/.installed  ## run only what `make test` leaves out of `make test-all`
	$(call EVERY,-m slow)

doctor: $(VENV)/.installed  ## say which world this is, and whether it is fit to sample with
	$(BIN)/ewsg doctor

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

docs:  ## build the documentation in site/, without a network, and look at it in a browser if there is one
	$(MAKE) WORLD=docs site

site: $(VENV)/.installed
	JAX_PLATFORMS=cpu MPLBACKEND=Agg $(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs site
	$(BIN)/python tools/site_links.py site
	$(BIN)/python tools/site_browser.py site

dist: $(VENV)/.installed  ## build the source archive, and from it the wheel
	rm -rf dist
	$(BIN)/python -m build --outdir dist

wheel: dist try-wheel  ## build the wheel and try it

try-wheel:  ## run the demonstration from the wheel in dist/, in an environment that has never seen this folder
	PYTHON='$(PYTHON)' tools/try_wheel.sh dist/*.whl $(CONSTRAINTS)

constraints: $(WORLDS:%=constraints-of-%)  ## pin what pyproject.toml resolves to today, in every world

constraints-of-%:
	python3 tools/worlds.py pin $*

clean:  ## remove the environments and everything generated
	rm -rf .venv .venv-docs .venv-oldest .venv-newest .pytest_cache .ruff_cache build dist ewsg-demo site docs/examples docs/reference
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
