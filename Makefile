# Two commands matter: `make reproduce` and `make test`. Each makes its own virtual environment in .venv.

PYTHON ?= python3
OUT ?= results
BIN := .venv/bin
# -qq: pip's own errors still show. --no-compile: most of what comes along is never imported.
# Modules that are imported are byte-compiled then, once, also where the environment forbids it: else every process does it anew.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt

VALIDATOR := .venv/validator/bin/rocrate-validator

.PHONY: reproduce test lab browser lint format bench evidence calibration clean

reproduce: .venv/installed
	$(BIN)/gyrostat reproduce --out $(OUT)

# Types are checked beside the tests: both fail the command. Long files come first in the order of names, doctests last.
test: .venv/installed-test $(VALIDATOR) browser
	$(BIN)/ruff check
	$(BIN)/ruff format --check -q
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder; tests=$$?; wait $$types && exit $$tests

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
calibration: .venv/installed-test
	$(BIN)/gyrostat bench calibration --out bench-results
	cp bench-results/calibration.md docs/

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

# The official validator of RO-Crates wants an older rich than ours: an environment of its own. Where it cannot be had, its test
# is skipped and says so.
$(VALIDATOR): .venv/python
	$(PYTHON) -m venv .venv/validator
	-.venv/validator/bin/python -m pip install -qq --no-compile --disable-pip-version-check roc-validator==0.13.0

# ISLP without what it depends on: one file of data is read from it.
.venv/installed-evidence: .venv/installed
	$(INSTALL) -e '.[bench,datasets]'
	$(INSTALL) --no-deps ISLP
	touch $@
