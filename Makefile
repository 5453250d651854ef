# Every target works on a fresh clone: .venv is made on first need, and again only when one of its inputs changes.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
INSTALLED := .venv/.installed
SITE := _build/html
RUN := _build/run
OFFLINE ?=
NAME ?=
# What pages would load from other hosts, and what sets their formulas, fetched by npm.
FETCHED := .offline/.fetched
NPM := $(shell command -v npm)
# The containers in which the grader runs submissions, and what typesets the book.
BUBBLEWRAP := bubblewrap
TEX := latexmk texlive-xetex texlive-latex-extra texlive-fonts-recommended fonts-texgyre fonts-texgyre-math \
  fonts-dejavu-extra librsvg2-bin poppler-utils
PACKAGES ?= $(BUBBLEWRAP) $(TEX)

# One thread per process: the processes are what runs in parallel, and sums come out in the same order everywhere.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
# Each of the processes that the tests start would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# What `time` says of each part of the tests.
export TIMEFORMAT := (%0R s, %0U s of the processor)
TESTS := $(BIN)/python -m pytest -q --durations 20
NOTEBOOKS := $(wildcard book/*.ipynb book/more/*.ipynb course/assignments/*/brief.ipynb)
# What stands for the others in make test: denoisers, and the loop that runs them. Both are soon done.
TWO := $(wildcard book/05_*.ipynb book/06_*.ipynb)
PARTS := $(MAKE) --no-print-directory

.PHONY: help setup book test test-all compare site store lint pdf system clean rest offline of-the-package of-the-course pages

help:
	@echo "make setup     install the tested versions into .venv"
	@echo "make book      run every chapter on this machine, and build the site from what was run"
	@echo "make test      what tells most: before every commit"
	@echo "make site      build the site from the stored outputs"
	@echo "               OFFLINE=1 with book or site: no page loads anything from another host (npm is needed once)"
	@echo "make store     run what has changed, and store what it prints in book/: for authors (NAME=book/01_*.ipynb)"
	@echo "make lint      style of code and notebooks, types of contracts, workflows"
	@echo "make test-all  everything: every test, every notebook against its stored outputs, every page in a browser"
	@echo "make pdf       typeset the book: dist/book.pdf, to which the next make site links"
	@echo "make system    Debian, Ubuntu: what the grader and make pdf need beside Python; asks for sudo"
	@echo "make clean     remove what was built"

setup: $(INSTALLED)
	@echo "Ready: .venv (activate it with: source $(BIN)/activate)"

# pip would print a line for each package that it warns of.
$(INSTALLED): pyproject.toml course/pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "Installing into .venv: one or two minutes, once"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[book,test,dev,rivals,languages]' -e './course[nbgrader]'
	@touch $@

# Each direct dependency in the lowest version that pyproject.toml allows: make setup CONSTRAINTS=lowest.txt
lowest.txt: pyproject.toml course/pyproject.toml
	@sed -nE 's/^ +"([A-Za-z0-9_.-]+)>=([0-9.]+).*/\1==\2/p' $^ | sort -u > $@

$(FETCHED): tools/offline/package.json tools/offline/package-lock.json tools/offline/.npmrc
	@$(if $(NPM),,echo "OFFLINE=1 needs npm to fetch MathJax and Pyodide: install Node.js" >&2; exit 1)
	@echo "Fetching MathJax and Pyodide into .offline: a minute, once"
	@mkdir -p .offline
	@cp $^ .offline
	@npm ci --prefix .offline --loglevel error
	@touch $@

# What OFFLINE=1 needs: the wheels of Pyodide too, with which cells run in pages that ask no other host.
offline: $(INSTALLED) $(FETCHED)
	@$(BIN)/python tools/fetch_wheels.py

book: $(INSTALLED)
	@$(BIN)/python tools/execute_book.py
	@$(PARTS) site AMPTUTORIAL_RUN=$(CURDIR)/$(RUN)

# Formulas are set when the site is built, if MathJax can be had.
site: $(INSTALLED) $(if $(filter 1,$(OFFLINE)),offline)
	@$(if $(NPM),$(PARTS) $(FETCHED),false) || \
	  echo "Without npm, or what it fetches, pages load MathJax from another host to set their formulas" >&2
	@$(PARTS) pages
	@echo "The book is built: open $(CURDIR)/$(SITE)/index.html"

# From nothing each time: a warning about a page that is not read again is not printed again, and -W would let it pass.
pages:
	@echo "Building the site"
	@rm -rf $(SITE) _build/.doctrees
	@$(BIN)/python tools/render_pages.py
	@OFFLINE=$(OFFLINE) AMPTUTORIAL_RUN=$(AMPTUTORIAL_RUN) $(BIN)/jupyter-book build . -W -n --keep-going --quiet

store: $(INSTALLED)
	@$(BIN)/python tools/execute_book.py --store $(NAME)

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/zizmor --offline --quiet .github
	@echo "Code, notebooks, types and workflows are tidy"

test: $(INSTALLED)
	@time $(PARTS) -j2 -Oline of-the-package of-the-course
	@echo "What tells most has passed. Left out: tests marked slow, the site, all notebooks but two; make test-all runs them"

# Two processes, each of which collects tests of its own: workers of pytest would collect all tests, each of them.
of-the-package: $(INSTALLED)
	@$(MAKE) --no-print-directory lint
	@time $(TESTS) -n 0 -m "not slow and not pages" amptutorial tools studies/text tests

of-the-course: $(INSTALLED)
	@$(MAKE) --no-print-directory compare NAME="$(TWO)" WORKERS=0
	@time $(TESTS) -n 0 -m "not slow" course/amptutorial_course course/tests

# The cells of one notebook need one kernel.
compare: WORKERS := 2
compare: $(INSTALLED)
	@TQDM_DISABLE=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --nbval $(or $(NAME),$(NOTEBOOKS))

test-all:
	@$(PARTS) test
	@$(PARTS) rest

# What make test leaves out, after it: in this order nothing is done twice.
rest: export AMPTUTORIAL_SITE := $(if $(NPM),$(SITE))
rest: $(INSTALLED) $(if $(NPM),offline)
	@time $(PARTS) pages OFFLINE=$(if $(NPM),1)
	@time $(PARTS) compare NAME="$(filter-out $(TWO),$(NOTEBOOKS))"
	@time $(TESTS) -n 2 --dist worksteal -m "slow or pages" studies/text tests course/tests
	@echo "Every test has passed, and every notebook has printed what is stored"

# What is made lies in dist, which outlives _build: the site takes it from there.
pdf: $(INSTALLED)
	@for tool in latexmk xelatex rsvg-convert pdftotext; do command -v $$tool >/dev/null || \
	  { echo "$$tool is missing. On Debian or Ubuntu: make system" >&2; exit 1; }; done
	@echo "Typesetting the book: some minutes"
	@rm -rf _build/latex _build/.doctrees
	@$(BIN)/python tools/render_pages.py
	@$(BIN)/jupyter-book build . --builder latex -W -n --keep-going --quiet
	@$(MAKE) --silent -C _build/latex all-pdf LATEXMKOPTS="-silent -halt-on-error" || { grep -A3 '^!' _build/latex/book.log; exit 1; }
	@! grep -A1 '^LaTeX Warning: .*eference `' _build/latex/book.log
	@mkdir -p dist && cp _build/latex/book.pdf dist
	@AMPTUTORIAL_PDF=dist/book.pdf $(BIN)/python -m pytest -q -n 0 tests/test_paper.py -k the_book
	@echo "The book is typeset: $(CURDIR)/dist/book.pdf"

# Ubuntu's AppArmor leaves namespaces to programs that have a profile of their own.
system:
	@sudo apt-get update -qq && sudo apt-get install -qq -y --no-install-recommends $(PACKAGES)
	@if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then \
	  sudo sysctl -q kernel.apparmor_restrict_unprivileged_userns=0; fi

clean:
	@rm -rf _build build dist *.egg-info lowest.txt .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@echo "Removed what was built; .venv and .offline stay (rm -r .venv .offline starts from nothing)"
