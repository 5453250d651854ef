# Every target works on a fresh clone: .venv is made on first need, and again only when one of its inputs changes.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
INSTALLED := .venv/.installed
SITE := _build/html
OFFLINE ?=
# What pages load from other hosts, fetched by npm.
FETCHED := .offline/.fetched
NPM := $(shell command -v npm)

# One thread per process: the processes are what runs in parallel, and sums come out in the same order everywhere.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

# Unit tests: neither the pages in a browser nor the notebooks.
UNIT := $(BIN)/python -m pytest -n 2 --dist loadfile --ignore tests/test_browser.py amptutorial tools tests

.PHONY: help setup check book site test unit mutants lint clean

help:
	@echo "make setup   create .venv with the tested versions"
	@echo "make check   lint and the fast unit tests: three minutes, before every commit"
	@echo "make book    run every chapter and brief on this machine, then build the site"
	@echo "make site    build the site from the stored outputs"
	@echo "             OFFLINE=1 with book or site: no page loads anything from another host (npm is needed once)"
	@echo "make test    lint, the site without a warning, tests, notebooks against their stored outputs, pages in a browser"
	@echo "make unit    all unit tests, the slow ones too"
	@echo "make mutants change the core's formulas one by one: some test must notice"
	@echo "make lint    style of code and notebooks, types of contracts, workflows"
	@echo "make clean   remove what was built"

setup: $(INSTALLED)
	@echo "Ready: .venv (activate it with: source $(BIN)/activate)"

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "Installing into .venv: one or two minutes, once"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[book,course,test,dev,rivals]'
	@touch $@

# Each direct dependency in the lowest version that pyproject.toml allows: make unit CONSTRAINTS=lowest.txt
lowest.txt: pyproject.toml
	@sed -nE 's/^ +"([A-Za-z0-9_.-]+)>=([0-9.]+).*/\1==\2/p' $< > $@

$(FETCHED): tools/offline/package.json tools/offline/package-lock.json tools/offline/.npmrc
	@$(if $(NPM),,echo "OFFLINE=1 needs npm to fetch MathJax: install Node.js" >&2; exit 1)
	@echo "Fetching MathJax into .offline: a minute, once"
	@mkdir -p .offline
	@cp $^ .offline
	@npm ci --prefix .offline --loglevel error
	@touch $@

book: $(INSTALLED)
	@$(BIN)/python tools/execute_book.py
	@$(MAKE) --no-print-directory site

# From nothing each time: a warning about a page that is not read again is not printed again, and -W would let it pass.
define build_site
@echo "Building the site"
@rm -rf _build
@OFFLINE=$(1) $(BIN)/jupyter-book build . -W -n --keep-going --quiet
endef

site: $(INSTALLED) $(if $(filter 1,$(OFFLINE)),$(FETCHED))
	@$(BIN)/python tools/render_pages.py
	$(call build_site,$(OFFLINE))
	@echo "The book is built: open $(CURDIR)/$(SITE)/index.html"

# The pages are not rendered anew here: a test says when they should be.
test: $(INSTALLED) $(if $(NPM),$(FETCHED)) lint
	$(call build_site,$(if $(NPM),1))
	@$(if $(NPM),AMPTUTORIAL_SITE=$(SITE)) $(BIN)/python -m pytest -n 2 --dist loadfile --nbval amptutorial tools tests book $(wildcard assignments/*/brief.ipynb)
	@cat _build/browser.txt 2>/dev/null || echo "No page was opened in a browser: see the tests that were skipped"
	@echo "Every test passed; the book builds without a warning"

check: lint
	@$(UNIT) -m "not slow"
	@echo "Lint and the fast unit tests passed; make test has the rest"

unit: $(INSTALLED)
	@$(UNIT)

mutants: $(INSTALLED)
	@$(BIN)/python tools/mutate.py

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/zizmor --offline --quiet .github
	@echo "Code, notebooks, types and workflows are tidy"

clean:
	@rm -rf _build build dist *.egg-info lowest.txt .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@echo "Removed what was built; .venv and .offline stay (rm -r .venv .offline starts from nothing)"
