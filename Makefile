# Everything from a bare python3 (3.11 or newer), pip and make. `make` alone lists the commands.

PYTHON ?= python3
VENV   ?= .venv
TOOLS  ?= .tools
BIN    := $(VENV)/bin
SPARK  := $(TOOLS)/spark
UV     := $(TOOLS)/bin/uv

# Use an installed interpreter: many networks cannot download one.
export UV_PYTHON_DOWNLOADS := never

# Every interpreter would compile every library again: the tests start hundreds of them.
unexport PYTHONDONTWRITEBYTECODE

# Tests write thousands of small files: in memory, where the machine has a folder with room for it.
# A third worker uses the time in which the other two wait for a disk, a socket or a process.
MEMORY := $(shell df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000 { print $$6 }')
PYTEST  = $(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY)) $(BIN)/pytest -n 3 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo lab test test-more test-long test-crash test-spark test-wheel check format bench sample docs site sites notebooks lock dist release clean

help: ## list the commands
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

# --- the environment ---------------------------------------------------------------------------

setup: $(VENV)/.stamp ## make the virtual environment: locked, hashed, editable

# --target works where the system's Python may not be installed into, and --upgrade repairs an incomplete folder.
$(UV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "beaconframes needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-warn-script-location --root-user-action=ignore \
		--upgrade --target $(TOOLS) "uv>=0.9,<1"

# Compiled once here, not by every test process at its start.
# uv needs no ensurepip, so Debian's bare python3 is enough; it does not read pip.conf, so behind a
# mirror that only pip knows, pip installs the same lock.
$(VENV)/.stamp: requirements.lock pyproject.toml | $(UV)
	@$(BIN)/python -c '' 2>/dev/null || $(UV) venv -q --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	$(UV) pip sync -q --compile-bytecode --python $(VENV) --require-hashes requirements.lock \
		|| $(PYTHON) -m pip --python $(BIN)/python install -q --require-hashes -r requirements.lock
	$(UV) pip install -q --python $(VENV) --no-deps --no-build-isolation -e .
	@touch $@

# Run by hand only, so that dependencies change only on purpose. The lock contains no address.
lock: | $(UV) ## resolve the lock files again
	$(UV) pip compile -q pyproject.toml --universal --python-version 3.11 --extra lab --extra duckdb --extra dask --extra cloud --extra excel --extra video \
		--group dev --group execution --group publish --group release --group site \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements.lock
	$(UV) pip compile -q --group headless --universal --python-version 3.11 --constraint requirements.lock \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-headless.txt
	echo pyspark | $(UV) pip compile -q - --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-spark.lock

# --- for users ---------------------------------------------------------------------------------

demo: setup ## serve the sample, load from it, draw it: five files in out/
	$(BIN)/beaconframes demo --out out

lab: setup ## open the first notebook in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_validator_income.ipynb

# --- for developers ----------------------------------------------------------------------------

# The workers use all cores; threads of polars would add a tenth of CPU time. The other tests have them.
test: setup ## run the tests
	POLARS_MAX_THREADS=1 $(PYTEST)

# One case of each test, and one point of each crash, with a fixed seed. One command, as to collect
# the tests takes time.
test-more: setup ## run a notebook, the gallery, a browser, more seeds, engines and sizes, and test-crash
	$(PYTEST) -m "more and not long or crash and long" --sample 1

test-long: setup ## run all tests that make test leaves out: they take hours
	$(PYTEST) -m "more or long"

test-crash: setup ## kill processes and let disks fail at a random sample of the points of test-long
	$(PYTEST) -m "crash and long" --sample 3

# Half a gigabyte that only these tests need, so it is not part of the environment.
$(SPARK)/.stamp: requirements-spark.lock | $(UV) $(VENV)/.stamp
	rm -rf $(SPARK)
	$(UV) pip install -q --python $(VENV) --target $(SPARK) --no-deps --require-hashes -r requirements-spark.lock \
		|| $(PYTHON) -m pip --python $(BIN)/python install -q --target $(SPARK) --no-deps --require-hashes -r requirements-spark.lock
	@touch $@

test-spark: setup $(if $(shell command -v java),$(SPARK)/.stamp) ## run three cases of each test of PySpark (needs Java)
	@if command -v java >/dev/null; then \
		PYTHONPATH=$(abspath $(SPARK)) $(BIN)/pytest -n 0 -m long -k pyspark --sample 3 tests/analysis; \
	else \
		echo "skipped: PySpark needs Java 17 or newer, and there is no command java"; \
	fi

test-wheel: setup | $(UV) ## build the wheel and use it in empty environments, with every Python of this machine
	tests/project/wheel.sh $(UV) $(BIN)/python

check: setup ## format, lint, types, import contracts, generated pages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python docs/generate.py --check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/actionlint
	$(BIN)/zizmor --quiet --offline --strict-collection .github

format: setup ## format the code, and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## run every benchmark, except those of the installation and of releases
	@set -e; for file in $(filter-out benchmarks/installation.py benchmarks/releases.py,$(sort $(wildcard benchmarks/*.py))); do echo "== $$file"; $(BIN)/python "$$file"; done

sample: setup ## simulate the dataset in data/sample again, if its sources have changed
	$(BIN)/python data/make.py

# The examples load from the sample. The snapshot of the public names is compared by a test, so that a change is
# read before it is merged.
docs: sample ## write the generated pages, stubs and pictures, the sample, and the snapshot of the public names
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/gallery/make.py --new
	UPDATE_SNAPSHOTS=1 $(BIN)/pytest -q -n 0 tests/snapshots/test_public_api.py
	$(BIN)/python docs/recipes.py
	$(BIN)/python docs/examples.py
	$(BIN)/python docs/reports.py

site: setup ## build the documentation site in out/site
	$(BIN)/python docs/site/build.py

# Each release builds its own pages; more than three would make each change of the branch wait.
sites: site ## build the site of the last three releases, too, in out/site/v1.2.3
	set -e; for tag in $$(git tag --list 'v*' --sort=-version:refname | head -3); do \
		git worktree add --force --detach out/$$tag $$tag; \
		$(MAKE) -C out/$$tag site; \
		mv out/$$tag/out/site out/site/$$tag; \
		git worktree remove --force out/$$tag; \
	done

notebooks: setup ## run the notebooks and store their outputs (needs Chromium)
	$(BIN)/python notebooks/make.py

dist: setup ## build sdist and wheel of the last commit in dist/, twice with equal bytes, and check them
	$(BIN)/python tools/release.py

release: setup | $(UV) ## commit and tag a version: make release VERSION=0.2.0 (publishes nothing)
	@test -n "$(VERSION)" || { echo "usage: make release VERSION=0.2.0" >&2; exit 2; }
	$(BIN)/python tools/release.py $(VERSION) --uv $(UV)

clean: ## remove all generated files
	rm -rf $(VENV) $(TOOLS) out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks notebooks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
