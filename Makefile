# Two commands matter: `make reproduce` and `make test`. Each makes its own virtual environment in .venv.

PYTHON ?= python3
OUT ?= results
BIN := .venv/bin
# -qq: pip's own errors still show. --no-compile: most of what comes along is never imported.
# Modules that are imported are byte-compiled then, once, also where the environment forbids it: else every process does it anew.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt

.PHONY: reproduce test fuzz lab browser lint format bench evidence clean

reproduce: .venv/installed
	$(BIN)/gyrostat reproduce --out $(OUT)

# Types are checked beside the tests: both fail the command. Long files come first in the order of names, doctests last.
test: .venv/installed-test browser
	$(BIN)/ruff check
	$(BIN)/ruff format --check -q
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder; tests=$$?; wait $$types && exit $$tests

# Hostile input everywhere: more than 5,000 cases in some minutes, with a table of what was tried, refused and went wrong.
fuzz: .venv/installed-test
	GYROSTAT_FUZZ=1 $(BIN)/pytest -p no:xdist -W ignore tests/fuzz

# The live laboratory, in the browser.
lab: .venv/installed-lab
	$(BIN)/gyrostat lab

# Installs chromium where it may, and says which tests cannot run where it may not.
browser:
	tests/tools/prepare-browser

lint: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy

format: .venv/installed-test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/installed-test
	$(BIN)/gyrostat bench

# The pages of docs/ on the linear estimator and on missing cells against other methods: about ten and forty minutes.
evidence: .venv/installed-evidence
	$(BIN)/gyrostat bench invariance completion --out bench-results
	cp bench-results/invariance.md bench-results/completion-evidence.md docs/
	cp bench-results/images/invariance.png bench-results/images/completion-*.png docs/images/

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache

.venv/python:
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	$(INSTALL) -e .
	touch $@

.venv/installed-lab: .venv/installed
	$(INSTALL) -e '.[lab]'
	touch $@

.venv/installed-test: .venv/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[test,torch,dask,lab]'
	touch .venv/installed $@

# ISLP without what it depends on: one file of data is read from it.
.venv/installed-evidence: .venv/installed
	$(INSTALL) -e '.[bench,datasets]'
	$(INSTALL) --no-deps ISLP
	touch $@
