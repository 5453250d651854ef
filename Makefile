# Every target works on a fresh clone: .venv is made on first need, and again only when one of its inputs changes.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
INSTALLED := .venv/.installed
SITE := _build/html
OFFLINE ?=
# What pages would load from other hosts, and what sets their formulas, fetched by npm.
FETCHED := .offline/.fetched
NPM := $(shell command -v npm)
# How to install what typesets the book: stated in CONTRIBUTING.md.
TEX := $(shell sed -n 's/^    sudo apt-get install/&/p' CONTRIBUTING.md)

# One thread per process: the processes are what runs in parallel, and sums come out in the same order everywhere.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

# Unit tests: neither the pages in a browser nor the notebooks.
UNIT := $(BIN)/python -m pytest -n 2 --dist loadfile --ignore tests/test_browser.py --ignore tests/test_live.py amptutorial tools tests

.PHONY: help setup bubblewrap tex wheels check book site pdf epub test unit mutants kit-study live-test firefox lint clean

help:
	@echo "make setup   create .venv with the tested versions"
	@echo "make bubblewrap  Debian, Ubuntu: the containers in which the grader runs submissions; asks for sudo"
	@echo "make check   lint and the fast unit tests: three minutes, before every commit"
	@echo "make book    run every chapter and brief on this machine, then build the site"
	@echo "make site    build the site from the stored outputs"
	@echo "             OFFLINE=1 with book or site: no page loads anything from another host (npm is needed once)"
	@echo "make pdf     typeset the book: dist/book.pdf, to which the next make site links"
	@echo "make epub    pack the book for electronic readers: dist/book.epub"
	@echo "make tex     install with apt-get what make pdf needs beside Python"
	@echo "make test    lint, the site without a warning, tests, notebooks against their stored outputs, pages in a browser"
	@echo "make unit    all unit tests, the slow ones too"
	@echo "make mutants change the core's formulas one by one: some test must notice"
	@echo "make wheels  fetch the Python that runs in pages, for OFFLINE=1: once"
	@echo "make live-test  run every page in a browser, as its reader may, and report: hours"
	@echo "make firefox  run two pages in Firefox, after make site OFFLINE=1"
	@echo "make kit-study   ask the checks of denoisers about wrong and right ones, on many seeds: a day"
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
	@$(if $(NPM),,echo "OFFLINE=1 needs npm to fetch MathJax and Pyodide: install Node.js" >&2; exit 1)
	@echo "Fetching MathJax and Pyodide into .offline: a minute, once"
	@mkdir -p .offline
	@cp $^ .offline
	@npm ci --prefix .offline --loglevel error
	@touch $@

# Ubuntu's AppArmor leaves namespaces to programs that have a profile of their own.
bubblewrap:
	@sudo apt-get update -qq && sudo apt-get install -qq -y bubblewrap
	@if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then \
	  sudo sysctl -q kernel.apparmor_restrict_unprivileged_userns=0; fi

# The wheels of Pyodide, with which cells run in pages that ask no other host.
wheels: $(INSTALLED) $(FETCHED)
	@$(BIN)/python tools/fetch_wheels.py

book: $(INSTALLED)
	@$(BIN)/python tools/execute_book.py
	@$(MAKE) --no-print-directory site

# From nothing each time: a warning about a page that is not read again is not printed again, and -W would let it pass.
define build_site
@echo "Building the site"
@rm -rf _build
@OFFLINE=$(1) $(BIN)/jupyter-book build . -W -n --keep-going --quiet
endef

# Formulas are set when the site is built, if MathJax can be had.
site: $(INSTALLED) $(if $(filter 1,$(OFFLINE)),wheels)
	@$(if $(NPM),$(MAKE) --no-print-directory $(FETCHED),false) || \
	  echo "Without npm, or what it fetches, pages load MathJax from another host to set their formulas" >&2
	@$(BIN)/python tools/render_pages.py
	$(call build_site,$(OFFLINE))
	@echo "The book is built: open $(CURDIR)/$(SITE)/index.html"

tex:
	@sudo apt-get update --quiet && $(TEX) --yes

# What is made lies in dist, which outlives _build: the site takes it from there.
pdf: $(INSTALLED)
	@for tool in latexmk xelatex rsvg-convert pdftotext; do command -v $$tool >/dev/null || \
	  { echo "$$tool is missing. On Debian or Ubuntu: $(TEX)" >&2; exit 1; }; done
	@echo "Typesetting the book: five minutes"
	@rm -rf _build/latex
	@$(BIN)/jupyter-book build . --builder latex -W -n --keep-going --quiet
	@$(MAKE) --silent -C _build/latex all-pdf LATEXMKOPTS="-silent -halt-on-error" || { grep -A3 '^!' _build/latex/book.log; exit 1; }
	@! grep -A1 '^LaTeX Warning: .*eference `' _build/latex/book.log
	@mkdir -p dist && cp _build/latex/book.pdf dist
	@AMPTUTORIAL_PDF=dist/book.pdf $(BIN)/python -m pytest -q -n 0 tests/test_paper.py -k the_book
	@echo "The book is typeset: $(CURDIR)/dist/book.pdf"

epub: $(INSTALLED)
	@rm -rf _build/epub
	@$(BIN)/jupyter-book build . --builder custom --custom-builder epub -W -n --keep-going --quiet
	@mkdir -p dist && cp _build/epub/book.epub dist
	@AMPTUTORIAL_EPUB=dist/book.epub $(BIN)/python -m pytest -q -n 0 tests/test_paper.py -k the_epub
	@echo "The book is packed: $(CURDIR)/dist/book.epub"

# The pages are not rendered anew here: a test says when they should be.
test: $(INSTALLED) $(if $(NPM),wheels) lint
	$(call build_site,$(if $(NPM),1))
	@$(if $(NPM),AMPTUTORIAL_SITE=$(SITE)) $(BIN)/python -m pytest -n 2 --dist loadfile --nbval amptutorial tools tests book $(wildcard assignments/*/brief.ipynb)
	@cat _build/browser.txt 2>/dev/null || echo "No page was opened in a browser: see the tests that were skipped"
	@echo "Every test passed; the book builds without a warning"

check: lint
	@$(UNIT) -m "not slow"
	@echo "Lint and the fast unit tests passed; make test has the rest"

unit: $(INSTALLED)
	@$(UNIT)

# Less of it, say: make kit-study STUDY="--assignment 4 --mutants 40 --seeds 3 --right-seeds 60"
kit-study: $(INSTALLED)
	@$(BIN)/python tools/kit_study.py $(STUDY)

mutants: $(INSTALLED)
	@$(BIN)/python tools/mutate.py

live-test:
	@$(MAKE) --no-print-directory site OFFLINE=1
	@$(BIN)/python tools/live_report.py

# After make live-test, or make site OFFLINE=1.
firefox: $(INSTALLED)
	@$(BIN)/python -m pip install --quiet marionette_driver
	@AMPTUTORIAL_SITE=$(SITE) $(BIN)/python -m pytest -q -n 0 tests/test_firefox.py

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
