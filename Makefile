# The few verbs of this project. `make help` lists them.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check
UV := $(PY) -m uv pip install --quiet --python $(PY)
# Neighbouring tests stay with one worker, where they share fixtures, until the other one has nothing left to do.
PYTEST := $(PY) -m pytest -n 2 --dist worksteal
READY := $(VENV)/.ready
BASE := $(VENV)/.base
BROWSER := $(VENV)/.browser
APT = $(shell test "$$(id -u)" = 0 || echo sudo -n) env DEBIAN_FRONTEND=noninteractive apt-get

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-hosts check bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Without the development tools where nothing is installed yet: the demo needs only what users get.
demo: $(if $(wildcard $(READY)),$(READY),$(BASE)) ## show foveate at work
	@$(PY) examples/demo.py

quick: check ## check, then run the fast tests: for every save
	@$(PYTEST) --hypothesis-profile quick -m "not slow" tests/unit tests/specs tests/golden

test: check $(if $(FOVEATE_CHROMIUM),,$(BROWSER)) ## check, then run every test
	@$(PYTEST)

test-hosts: $(READY) ## run the real Claude Code and Codex against a played model (installs them with npm)
	@$(PY) -m pytest -n 0 tests/hosts

check: $(READY) ## lint, formatting and types
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --no-error-summary

bench: $(READY) ## measure quality and speed (see bench/README.md)
	@$(PY) -m bench

docs: $(READY) ## regenerate docs/reference
	@$(PY) docs/generate.py

clean: ## remove caches and build outputs; the .venv stays
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	@find . -name .venv -prune -o -name .git -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(READY): pyproject.toml
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install 'uv>=0.8,<1'  # some 170 packages: pip takes minutes to choose them
	@$(UV) -e '.[dev]'
	@touch $(READY)

$(BASE): pyproject.toml
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -e .
	@touch $(BASE)

# A Chromium for tests/browser: the one that is here, else Debian's, else Playwright's.
$(BROWSER): | $(READY)
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome || \
	   { $(APT) update && $(APT) install -y --no-install-recommends chromium; } || \
	   $(PY) -m playwright install chromium; } >$@.log 2>&1 || { cat $@.log >&2; \
	   echo "There is no Chromium, and none could be installed: install one, or set FOVEATE_CHROMIUM to its path." >&2; exit 1; }
	@rm $@.log
	@touch $@
