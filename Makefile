PYTHON ?= python3
VENV   ?= .venv
TOOLS  ?= .tools
UV     := $(TOOLS)/bin/uv
export UV_PYTHON_DOWNLOADS := never

.PHONY: setup lock
setup: $(VENV)/.stamp

$(UV):
	$(PYTHON) -m pip install -q --disable-pip-version-check --target $(TOOLS) "uv>=0.9"

# --link-mode=copy: the cache and the checkout may lie on different disks.
$(VENV)/.stamp: requirements.lock pyproject.toml | $(UV)
	$(UV) venv -q --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	$(UV) pip sync -q --python $(VENV) --require-hashes requirements.lock
	$(UV) pip install -q --python $(VENV) --no-deps --no-build-isolation -e .
	@touch $@

LOCK := --universal --python-version 3.11 --extra lab --extra duckdb --group dev --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links --no-annotate -q
lock: | $(UV)
	$(UV) pip compile pyproject.toml $(LOCK) -o requirements.lock
