# Two commands matter: `make reproduce` and `make test`. Each makes its own virtual environment in .venv.

PYTHON ?= python3
OUT ?= results
BIN := .venv/bin

.PHONY: reproduce test lint bench clean

reproduce: .venv/installed
	$(BIN)/gyrostat reproduce --out $(OUT)

test: .venv/installed-test lint
	$(BIN)/pytest -n auto --dist loadfile

lint: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/mypy

bench: .venv/installed-test
	$(BIN)/gyrostat bench

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache

.venv/python:
	$(PYTHON) -m venv .venv
	touch $@

# -qq: pip's own errors still show.
.venv/installed: .venv/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[test,torch,lab]'
	touch $@
