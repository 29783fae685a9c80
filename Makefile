# make demo    open Neovim on a chat with the demo model; without a terminal, play the session and print it
# make test    run all tests
# make fuzz    try every law with new examples, for MINUTES=5
# make check   formatting, lint, types and tests: what has to pass before anything is merged
# make guests  install MCP servers of others, for the tests that talk to them; without, those are skipped
# make format  put Python and Lua into shape
# make lock    pin anew what the plugin installs for itself, with hashes; needs uv
# make bench   measure, on this machine
# make screens draw the pictures of doc/ from real screens

PYTHON ?= python3
BIN := .venv/bin
STYLUA := .tools/node_modules/.bin/stylua
LUA := lua plugin build.lua
GUESTS := .tools/guests
NPM_GUESTS := $(addprefix @modelcontextprotocol/server-,everything@2026.8.31 filesystem@2026.8.31 \
  memory@2026.8.31 sequential-thinking@2026.8.31)
PYPI_GUESTS := mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
.DEFAULT_GOAL := check

# uv where there is one, since it is faster; else the standard library's venv and pip.
.venv/.stamp: pyproject.toml
	@echo "installing Parley and what its tests need into .venv ..."
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python '>=3.11' .venv && \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[dev]'; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit("Parley needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None' && \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

demo: .venv/.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m parley.drivers.nvim.demo

test: .venv/.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2

MINUTES ?= 5
fuzz: .venv/.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.fuzz --minutes $(MINUTES) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FACTOR),--factor $(FACTOR)) -- $(ONLY)

guests: $(GUESTS)/.stamp

$(GUESTS)/.stamp: Makefile
	@echo "installing MCP servers to test with into $(GUESTS) ..."
	@npm install --silent --no-fund --no-audit --prefix $(GUESTS) $(NPM_GUESTS)
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python '>=3.11' $(GUESTS)/python && \
	  uv pip install --quiet --python $(GUESTS)/python/bin/python $(PYPI_GUESTS); \
	else \
	  $(PYTHON) -m venv $(GUESTS)/python && \
	  $(GUESTS)/python/bin/python -m pip install --quiet --disable-pip-version-check $(PYPI_GUESTS); \
	fi
	@touch $@

lint: .venv/.stamp $(STYLUA)
	@$(BIN)/ruff format --quiet --check python rplugin tests
	@$(BIN)/ruff check --quiet python rplugin tests
	@$(BIN)/mypy --no-error-summary
	@$(STYLUA) --check $(LUA)
	@if command -v luacheck >/dev/null; then luacheck --quiet $(LUA); \
	else echo "luacheck is not installed: Lua is not linted (apt install lua-check)"; fi

check: lint test

format: .venv/.stamp $(STYLUA)
	@$(BIN)/ruff check --quiet --fix-only python rplugin tests
	@$(BIN)/ruff format --quiet python rplugin tests
	@$(STYLUA) $(LUA)

bench: .venv/.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.bench

# Pictures of real screens, for README and help.
screens: .venv/.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=tests $(BIN)/python tests/nvim/picture.py doc/session.svg

$(STYLUA):
	@npm install --silent --no-fund --no-audit --prefix .tools @johnnymorganz/stylua-bin@2.5.2

# Intel Macs get an older one: cryptography has no wheels for them from 49.
lock:
	@echo "cryptography<49; sys_platform == 'darwin' and platform_machine == 'x86_64'" | \
	  uv --no-config pip compile --quiet --universal --generate-hashes --upgrade --python-version 3.11 \
	  --no-annotate --custom-compile-command "make lock" --constraints - -o requirements.lock pyproject.toml

clean:
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis doc/tags

.PHONY: demo test fuzz guests lint check format bench screens lock clean
