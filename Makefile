# make demo    open Neovim on a chat with the demo model; without a terminal, play the session and print it
# make test    run all tests but those of the next two
# make guests  install MCP servers of others and the protocol's conformance suite, and run the tests with them,
#              with package managers and with type checkers
# make fuzz    try every law with new examples, for MINUTES=5
# make neovims  run the tests of the editor with the oldest Neovim that Parley supports and with the newest
# make branches  see which branches of Parley the tests that try the same each time go through; there is a floor
# make check   formatting, lint, types, `make test` and `make branches`: what has to pass before a merge
# make pyright get the second type checker that programs of the library's users are tried with
# make format  put Python and Lua into shape
# make man    write the manual page, doc/parley.1, anew from the help of the commands
# make lock    pin anew what the plugin installs for itself, with hashes; needs uv
# make bench   measure, on this machine; ONLY="requests streams" measures those parts
# make screens draw the picture of doc/ from a real screen; TO=folder draws every scene there is

# make PYTHON=/path/to/python3.12 ... takes that Python; without, .venv has the first that is new enough
export PYTHON

BIN := .venv/bin
STYLUA := .tools/node_modules/.bin/stylua
# The stylua of the PATH, if there is one; else one from npm; else the shape of Lua is not looked at.
WITH_STYLUA := PATH="$$PATH:$$PWD/.tools/node_modules/.bin"; ! command -v stylua >/dev/null || stylua
LUA := lua plugin build.lua
GUESTS := .tools/guests
# Servers of five SDKs, 280 MB to get: what was newest on 2026-11-23. None of their scripts runs when they are
# installed: one would get a browser, one tells its makers. So the program of mise comes from the package for
# this system, which is what its script does.
NPM_GUESTS = $(addprefix @modelcontextprotocol/server-,everything@2026.8.31 filesystem@2026.8.31 \
  memory@2026.8.31 sequential-thinking@2026.8.31) @playwright/mcp@0.0.83 @wonderwhy-er/desktop-commander@0.2.52
# Of Rust's SDK: one that knows the older revisions only, one that knows the newest in its own way, one more.
NPM_GUESTS += nushell@0.114.0 nushell-next@npm:nushell@0.115.1 \
  @jdxcode/mise-$(shell node -p 'process.platform + "-" + process.arch')@2026.9.15
# Of Go's, and of C#'s.
NPM_GUESTS += kubernetes-mcp-server@0.0.67 @azure/mcp@2.0.5
PYPI_GUESTS := mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 fastmcp==4.1.2
# The conformance suite of the protocol's project, the first that plays servers of the newest revision
# (2026-11-23), and the Node that it needs, which is newer than most.
SUITE := @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22.23.3
.DEFAULT_GOAL := check

environment:
	@.ci/environment all

demo:
	@.ci/environment demo
	@nvim=$$(.ci/environment nvim) && PYTHONPATH="$$PWD/python" $(BIN)/python -m parley.nvim.demo "$$nvim"

test: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(if $(SHUFFLE),PARLEY_FUZZ=1) $(BIN)/python -m pytest -n logical --dist worksteal \
	  $(if $(SHUFFLE),--shuffle=$(SHUFFLE) --hypothesis-seed=$(SHUFFLE))

branches: environment
	@rm -f .coverage .coverage.*
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m pytest -n logical --dist worksteal -p tests.branches
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

# With each Neovim that .ci/neovims names; .ci/each runs them at the same time.
neovims: environment
	@mkdir -p .tools && .ci/neovims >.tools/neovims.txt
	@PATH="$$PWD/$(BIN):$$PATH" .ci/each <.tools/neovims.txt $(BIN)/python -m pytest -n logical --dist worksteal \
	  -p no:cacheprovider tests/nvim tests/e2e/test_demo.py

MINUTES ?= 5
fuzz: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.fuzz --minutes $(MINUTES) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FACTOR),--factor $(FACTOR)) -- $(ONLY)

guests: environment pyright $(GUESTS)/.stamp
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m pytest -n logical --dist worksteal -m guests

$(GUESTS)/.stamp: Makefile | environment
	@echo "installing MCP servers to test with into $(GUESTS) ..."
	@npm install --silent --ignore-scripts --no-fund --no-audit --prefix $(GUESTS) $(NPM_GUESTS)
	@npm install --silent --no-fund --no-audit --prefix $(GUESTS)/conformance $(SUITE)
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(BIN)/python $(GUESTS)/python && \
	  uv pip install --quiet --python $(GUESTS)/python/bin/python $(PYPI_GUESTS); \
	else \
	  $(BIN)/python -m venv $(GUESTS)/python && \
	  $(GUESTS)/python/bin/python -m pip install --quiet --disable-pip-version-check $(PYPI_GUESTS); \
	fi
	@touch $@

lint: environment stylua
	@$(BIN)/ruff format --quiet --check python rplugin tests examples
	@$(BIN)/ruff check --quiet python rplugin tests examples
	@$(BIN)/python -m mypy --no-error-summary
	@$(WITH_STYLUA) --check $(LUA)
	@if command -v luacheck >/dev/null; then luacheck --quiet $(LUA); \
	else echo "luacheck is not installed: Lua is not linted (apt install lua-check, brew install luacheck)"; fi

check: lint test branches

format: environment stylua
	@$(BIN)/ruff check --quiet --fix-only python rplugin tests examples
	@$(BIN)/ruff format --quiet python rplugin tests examples
	@$(WITH_STYLUA) $(LUA)

bench: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.bench $(ONLY)

man: environment
	@$(BIN)/python -m parley man > doc/parley.1

# Pictures of real screens: that of README, or all of them for looking at.
screens: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.nvim.screens $(if $(TO),"$(TO)",doc session)

stylua:
	@if [ -x $(STYLUA) ] || command -v stylua >/dev/null; then :; \
	elif command -v npm >/dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix .tools @johnnymorganz/stylua-bin@2.5.2; \
	else echo "stylua is not installed, nor npm to get it with: the shape of Lua is not checked"; fi

# The second type checker that the programs of the library's users are tried with.
pyright:
	@if [ -x .tools/node_modules/.bin/pyright ] || command -v pyright >/dev/null; then :; \
	elif command -v npm >/dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix .tools pyright@1.1.414; \
	else echo "pyright is not installed, nor npm to get it with: its test is skipped"; fi

# Intel Macs get an older one: cryptography has no wheels for them from 49.
lock:
	@echo "cryptography<49; sys_platform == 'darwin' and platform_machine == 'x86_64'" | \
	  uv --no-config pip compile --quiet --universal --generate-hashes --upgrade --python-version 3.11 \
	  --no-annotate --custom-compile-command "make lock" --constraints - -o requirements.lock pyproject.toml

clean:
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* build dist doc/tags python/*.egg-info
	find python rplugin tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: environment stylua pyright demo test branches neovims fuzz guests lint check format bench man screens lock clean
