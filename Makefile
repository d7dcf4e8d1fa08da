# The commands of the house. `make help` lists them; each is a thin line over a script or a tool that can be called by itself.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
unexport PYTHONDONTWRITEBYTECODE  # each of Evenflow's processes would compile all its modules anew: seconds of CPU

BIN := .venv/bin
# Processes that run tests side by side: while one waits for what has to come true, the others use the processors. Tests of whole
# systems wait more.
WORKERS ?= $(shell echo $$(($$(nproc) * 3 / 2)))
SYSTEM_WORKERS ?= $(shell echo $$(($$(nproc) * 2)))
SEEDS ?= 100      # scenarios of `make chaos`; ARGS="--first 17" begins with that seed
SHAPE ?= b_i      # what `make bench` runs; bench/README.md lists the shapes
LONGEST ?= 2      # seconds that a test of `make test` may take where nothing else wants the processors; tests/README.md
ARGS ?=           # further arguments for evenflow, pytest or bench/run.py

.PHONY: help setup demo up test test-system test-slow chaos check format bench bench-check docs lock sbom wheel image chart clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-11s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## Install what is missing: Python, Java, the pinned packages (the commands below do it by themselves)
	@scripts/setup

demo: setup  ## Run the example pipeline on Spark: from nothing to a report with charts
	@$(BIN)/evenflow run examples/import_census.py $(ARGS)

up: setup  ## Start Evenflow on this machine; Ctrl-C stops it
	@$(BIN)/evenflow up $(ARGS)

test: setup  ## Run checks and, beside them, the tests that need no whole system
	@scripts/check & checks=$$!; failed=0; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not system" --keep-durations test --longest $(LONGEST) $(ARGS) \
		|| failed=$$?; \
	wait $$checks || { echo "Style, types or layers are not right, as told above. Again: scripts/check"; failed=1; }; \
	exit $$failed

test-system: setup  ## Run the tests of whole systems: fleets, executors with their brokers, Spark, long explorations
	@scripts/setup --brokers --browser --airflow
	@failed=0; \
	$(BIN)/python -m pytest -n $(SYSTEM_WORKERS) --dist loadgroup -m "system and not slow and not alone" --keep-durations system $(ARGS) || [[ $$? == 5 ]] || failed=1; \
	$(BIN)/python -m pytest -m "system and not slow and alone" $(ARGS) || [[ $$? == 5 ]] || failed=1; \
	exit $$failed  # 5: none of those that ARGS chooses is such a test

test-slow: setup  ## Run the slow tests: faults, soaks
	@$(BIN)/python -m pytest -m slow $(ARGS)

chaos: setup  ## Kill, freeze and cut off real processes, seed by seed: make chaos SEEDS=100 (at most 45 min)
	@$(BIN)/python -m tests.chaos --seeds $(SEEDS) $(ARGS)

check: setup  ## Check style, types, layers and tidiness
	@scripts/check
	@$(BIN)/python -m pytest tests/house $(ARGS)

format: setup  ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: setup  ## Run a benchmark: make bench SHAPE=b_ii
	@$(BIN)/python bench/run.py $(SHAPE) $(ARGS)

bench-check: setup  ## Compare with the figures that are kept, in ratios to a reference: make bench-check ARGS="a_i b_ii"
	@$(BIN)/python bench/check.py $(ARGS)

docs: setup  ## Write the generated reference pages anew, then check links and examples
	@$(BIN)/python -m scripts.reference
	@$(BIN)/python -m pytest tests/house/test_documents.py tests/house/test_examples.py $(ARGS)

lock: setup  ## Pin the newest versions that pyproject.toml allows
	@scripts/lock

sbom: setup  ## Write what is installed at run time, with hashes, to dist/evenflow.cdx.json (CycloneDX), for scanners
	@mkdir -p dist
	@$(BIN)/python -m scripts.sbom base >dist/evenflow.cdx.json
	@echo "dist/evenflow.cdx.json"

wheel: setup  ## Build what `pip install` takes, dist/evenflow-*.whl, and the sdist
	@$(BIN)/python -m hatchling build -d dist

image: setup  ## Build the Docker image evenflow:VERSION: make image ARGS="--build-arg EXTRAS=spark,s3"
	@$(BIN)/hadolint deploy/docker/Dockerfile
	@docker build -f deploy/docker/Dockerfile -t evenflow:$$($(BIN)/evenflow --version) $(ARGS) .

chart: setup  ## Lint the Helm chart and pack it: dist/evenflow-VERSION.tgz
	@mkdir -p dist
	@$(BIN)/python -m scripts.helm lint deploy/helm/evenflow
	@$(BIN)/python -m scripts.helm package deploy/helm/evenflow dist

clean:  ## Remove what the commands above made, but no data (.evenflow stays)
	rm -rf .venv build dist src/evenflow/api/built web/node_modules web/.built .ruff_cache .mypy_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
