# `make help` lists the targets. Every one makes .venv or brings it up to date first, from any state.
#   PYTHON=python3.12   the Python that .venv is made from (default: the first on PATH that is 3.11 or newer)
#   ENGINE=cuda         MLX's CUDA build in the place of the one for this platform (Metal or CPU)

PYTHON ?=
ENGINE ?= engine
EVERYTHING = $(ENGINE) encryption lab plot test
BIN = .venv/bin

# What these tools would keep in the home directory stays in the checkout.
export IPYTHONDIR ?= $(CURDIR)/.venv/ipython
export JUPYTER_CONFIG_DIR ?= $(CURDIR)/.venv/jupyter-config
export JUPYTER_DATA_DIR ?= $(CURDIR)/.venv/jupyter-data
export MPLCONFIGDIR ?= $(CURDIR)/.venv/matplotlib

# Tests of what needs neither a model nor a server of ours.
CONTROL_PLANE = $(wildcard tests/packaging tests/labbook tests/cache tests/control)

install = @python="$$(sh scripts/setup-python.sh '$(PYTHON)')" && \
	"$$python" scripts/setup-environment.py $(if $(PYTHON),--same-version) $(1)

# Notebooks under test take their parameters from these alone. Comparing outputs is about the default model, fast.
notebook_test = LAB_FAST=1 LAB_MODEL= LAB_BASE_URL= LAB_LABBOOK='$(CURDIR)/build/test-labbook.md' \
	PATH="$(CURDIR)/$(BIN):$$PATH"

# make hands its variables on in the environment, so no quote in a URL can do harm.
run_notebooks = @LAB_MODEL="$${MODEL:-$$LAB_MODEL}" LAB_BASE_URL="$${BASE_URL:-$$LAB_BASE_URL}" \
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/run-notebooks.py $$NOTEBOOKS

.PHONY: help setup measure bench check lint test notebooks notebooks-full lab constraints clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1@/p' Makefile | awk -F@ '{ printf "make %-14s %s\n", $$1, $$2 }'

setup: ## make .venv with everything in it
	$(call install,$(EVERYTHING))

measure: ## start the engine on a real model, measure a warm prefix, append the record to labbook.md
	$(call install,$(ENGINE) plot)
	@$(BIN)/python scripts/first-measurement.py

bench: ## compare the engine with mlx-lm on this machine, in one table
	$(call install,$(ENGINE) plot)
	@$(BIN)/python scripts/bench.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint ## lint, types and the tests of the control plane, in under two minutes
	$(BIN)/python -m pytest $(CONTROL_PLANE)

test: lint ## everything that CI runs
	@mkdir -p build && rm -f build/test-labbook.md
	$(notebook_test) $(BIN)/python -m pytest tests notebooks --nbval --nbval-cell-timeout=100

notebooks: setup ## run the notebooks in fast mode; NOTEBOOKS="00 05", MODEL=tiny and BASE_URL=http://... choose
	$(run_notebooks)

notebooks-full: setup ## the same with the full sizes, up to 45 minutes
	$(run_notebooks) --full

lab: setup ## open JupyterLab on the first notebook
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab --notebook-dir=. \
		--LabApp.default_url=/lab/tree/notebooks/00_first_measurement.ipynb \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(JUPYTER_FLAGS)

.PHONY: site test-browser
site: ## make build/site: all notebooks as HTML pages that need no network
	$(call install,lab)
	@$(BIN)/python scripts/build-site.py

test-browser: ## JupyterLab and the site in a headless Chromium (needs chromium and npm)
	$(call install,$(EVERYTHING) browser)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/browser --timeout=300 $(BROWSER_FLAGS)

constraints: ## refresh constraints.txt: the newest versions for every platform and Python (needs a network)
	@python="$$(sh scripts/setup-python.sh '$(PYTHON)')" && "$$python" -m venv build/uv
	build/uv/bin/python -m pip install --quiet uv
	build/uv/bin/uv pip compile pyproject.toml --all-extras --universal --upgrade --no-cache --no-annotate --quiet \
		--custom-compile-command 'make constraints' --output-file constraints.txt

clean: ## remove .venv and what the tools left; labbook.md and MINIVLLM_HOME stay
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
