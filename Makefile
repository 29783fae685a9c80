# make demo      open Neovim with a chat for the demo model; without a terminal, print the session
# make test      run the tests that take less than four minutes on two cores; `make fuzz` runs
#                the slow laws
# make slow      run the slowest test files, which `make test` leaves out
# make guests    install other people's MCP servers, agents, model gateways and the protocol's
#                conformance suite, and run the tests that need them, package managers or type checkers
# make fuzz      try every law with new examples, for MINUTES=5
# make wheels    check that all packages have wheels for all supported Pythons and systems
# make bounds    run the fast tests with the lowest and the newest versions of the packages
# make neovims   run the editor's tests with the oldest supported Neovim and with the newest
# make branches  measure which code branches the repeatable tests cover; fails below a minimum
# make check     formatting, lint, types, `make test` and `make branches`: required before a merge
# make pyright   install the second type checker, which checks programs that use the library
# make format    format Python and Lua
# make man       regenerate the manual page, doc/parley.1, from the commands' help
# make lock      update the pinned versions and hashes of the plugin's packages; needs uv
# make release   make and check all published files of VERSION=0.2.0, and publish nothing; with
#                TAG=yes, also tag the commit
# make address   write the repository's address, URL=https://host/owner/parley, into all its places
# make bench     measure on this machine; ONLY="requests streams" measures only these parts
# make endurance ask 300 questions in one Neovim, and compare its memory and work at the start and end
# make site      make the documentation site in site/, with pictures of real screens
# make screens   draw README's pictures in doc/ from real screens; TO=folder draws every scene

# make PYTHON=/path/to/python3.12 ... uses this Python; by default, .venv uses the first Python that
# is new enough
export PYTHON

BIN := .venv/bin
STYLUA := .tools/node_modules/.bin/stylua
# The stylua in PATH, else the one from npm; if there is none, the format of Lua is not checked.
WITH_STYLUA := PATH="$$PATH:$$PWD/.tools/node_modules/.bin"; ! command -v stylua >/dev/null || stylua
LUA := lua plugin build.lua
GUESTS := .tools/guests
# Servers built with five SDKs, a download of 280 MB: the newest versions on 2026-11-23. npm must
# not run their install scripts, because one downloads a browser and one reports to its makers. So
# install mise's program directly from the package for this system, as its script would.
NPM_GUESTS = $(addprefix @modelcontextprotocol/server-,everything@2026.8.31 filesystem@2026.8.31 \
  memory@2026.8.31 sequential-thinking@2026.8.31) @playwright/mcp@0.0.83 @wonderwhy-er/desktop-commander@0.2.52
# Rust's SDK: a server with only older revisions, one with its own form of the newest, and one more.
NPM_GUESTS += nushell@0.114.0 nushell-next@npm:nushell@0.115.1 \
  @jdxcode/mise-$(shell node -p 'process.platform + "-" + process.arch')@2026.9.15
# The SDKs for Go and C#.
NPM_GUESTS += kubernetes-mcp-server@0.0.67 @azure/mcp@2.0.5
PYPI_GUESTS := mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 fastmcp==4.1.2
# Mock models that break replies, and a gateway: the newest versions on 2026-11-26. Since LiteLLM's
# extra `proxy` needs packages that are not on PyPI, name those that its program imports.
NPM_GUESTS += @copilotkit/aimock@1.43.0
GATEWAYS := llmock==0.2.2 litellm==1.110.2 apscheduler==3.11.3 backoff==2.2.1 expression==5.8.0 \
  fastapi-sso==0.23.0 mcp==2.3.0 orjson==3.13.0 pynacl==1.6.2 redis==8.1.0 semver==3.1.2 soundfile==0.14.0
# Agents of the Agent Client Protocol, the newest versions on 2026-11-26; their programs are 800 MB.
# Claude's runs with the newer Node below. OpenCode's own script would link its program, so install
# this directly.
NPM_GUESTS += @agentclientprotocol/claude-agent-acp@0.101.0 @agentclientprotocol/codex-acp@2.6.0 \
  @google/gemini-cli@0.61.0 opencode-$(shell node -p 'process.platform + "-" + process.arch')@1.18.33
# The conformance suite from the protocol's project: the first version that plays servers with the
# newest revision (as of 2026-11-23). It needs a newer Node than most systems have.
SUITE := @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22.23.3
.DEFAULT_GOAL := check

environment:
	@.ci/environment all

demo:
	@.ci/environment demo
	@nvim=$$(.ci/environment nvim) && PYTHONPATH="$$PWD/python" $(BIN)/python -m parley.nvim.demo "$$nvim"

test: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(if $(SHUFFLE),PARLEY_FUZZ=1) $(BIN)/python -m pytest -n logical --dist worksteal -m "not fuzz and not guests and not slow" \
	  $(if $(SHUFFLE),--shuffle=$(SHUFFLE) --hypothesis-seed=$(SHUFFLE))

slow: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m pytest -n logical --dist worksteal -m "slow and not fuzz and not guests" $(ONLY)

branches: environment
	@PARLEY_BRANCHES=1 .ci/fast .venv

# Tests in tests/nvim of processes, providers and the host. They run with one Neovim, because its version
# makes no difference to them; other files there test everything that they show in the editor.
ALIKE := agent_kill crossover faults imports kill package screens server_waits site_scenes tasks thinking together

# Uses each Neovim that .ci/neovims prints; .ci/each runs the tests with all of them at once.
neovims: environment
	@mkdir -p .tools && .ci/neovims >.tools/neovims.txt
	@PATH="$$PWD/$(BIN):$$PATH" .ci/each <.tools/neovims.txt $(BIN)/python -m pytest -n logical --dist worksteal \
	  -p no:cacheprovider $(ALIKE:%=--ignore=tests/nvim/test_%.py) tests/nvim tests/e2e/test_demo.py

wheels: environment
	@.ci/wheels

# PYTHON=/path/to/python3.14 tests with this Python.
bounds: environment
	@.ci/bounds

MINUTES ?= 5
fuzz: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.fuzz --minutes $(MINUTES) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FACTOR),--factor $(FACTOR)) -- $(ONLY)

guests: environment pyright $(GUESTS)/.stamp $(GUESTS)/.python
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m pytest -n logical --dist worksteal -m guests

# Python packages, in an environment of their own: $(call environment_of,NAME,PACKAGES)
define environment_of
if command -v uv >/dev/null; then \
  uv venv --quiet --allow-existing --python $(BIN)/python $(GUESTS)/$(1) && \
  uv pip install --quiet --python $(GUESTS)/$(1)/bin/python $(2); \
else \
  $(BIN)/python -m venv $(GUESTS)/$(1) && \
  $(GUESTS)/$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2); \
fi
endef

$(GUESTS)/.stamp: Makefile
	@echo "installing MCP servers to test with into $(GUESTS) ..."
	@mkdir -p $(GUESTS)
	@npm install --silent --ignore-scripts --no-fund --no-audit --prefix $(GUESTS) $(NPM_GUESTS)
	@npm install --silent --no-fund --no-audit --prefix $(GUESTS)/conformance $(SUITE)
	@touch $@

# Both environments are installed at the same time.
$(GUESTS)/.python: Makefile | environment
	@echo "installing MCP servers and gateways to test with into $(GUESTS) ..."
	@mkdir -p $(GUESTS)
	@{ $(call environment_of,gateways,$(GATEWAYS)); } & gateways=$$!; \
	{ $(call environment_of,python,$(PYPI_GUESTS)); } && wait $$gateways
	@touch $@

lint: environment stylua
	@$(BIN)/ruff format --quiet --check python rplugin tests examples .ci
	@$(BIN)/ruff check --quiet python rplugin tests examples .ci
	@$(BIN)/python -m mypy --no-error-summary
	@$(WITH_STYLUA) --check $(LUA)
	@if command -v luacheck >/dev/null; then luacheck --quiet $(LUA); \
	else echo "luacheck is not installed: Lua is not linted (apt install lua-check, brew install luacheck)"; fi

check: lint test branches

format: environment stylua
	@$(BIN)/ruff check --quiet --fix-only python rplugin tests examples .ci
	@$(BIN)/ruff format --quiet python rplugin tests examples .ci
	@$(WITH_STYLUA) $(LUA)

endurance: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.bench.endurance

bench: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.bench $(ONLY)

release: environment
	@nvim=$$(.ci/environment nvim) && PARLEY_NVIM="$$nvim" PYTHONPATH=.ci $(BIN)/python -m release "$(VERSION)" $(if $(TAG),--tag)

address: environment
	@PYTHONPATH=.ci $(BIN)/python -m release.address "$(URL)"

man: environment
	@$(BIN)/python -m parley man > doc/parley.1

# Pictures of real screens: README's two moving pictures, or with TO, all scenes.
screens: environment
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python -m tests.nvim.screens $(if $(TO),"$(TO)",doc asking editing)

# The pictures are drawn again only if their folder is missing or they are not complete.
site: environment
	@PATH="$$PWD/$(BIN):$$PATH"; export PATH; \
	for scene in $$(PYTHONPATH=.ci python -m website --scenes); do \
	  [ -e "site/pictures/$$scene.svg" ] || echo "$$scene"; \
	done | xargs -r python -m tests.nvim.screens site/pictures
	@PYTHONPATH=.ci $(BIN)/python -m website

stylua:
	@if [ -x $(STYLUA) ] || command -v stylua >/dev/null; then :; \
	elif command -v npm >/dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix .tools @johnnymorganz/stylua-bin@2.5.2; \
	else echo "stylua is not installed, nor npm to get it with: the shape of Lua is not checked"; fi

# The second type checker, which checks programs that use the library.
pyright:
	@if [ -x .tools/node_modules/.bin/pyright ] || command -v pyright >/dev/null; then :; \
	elif command -v npm >/dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix .tools pyright@1.1.414; \
	else echo "pyright is not installed, nor npm to get it with: its test is skipped"; fi

# Intel Macs need an older version: cryptography has no wheels for them since 49.
lock:
	@echo "cryptography<49; sys_platform == 'darwin' and platform_machine == 'x86_64'" | \
	  uv --no-config pip compile --quiet --universal --generate-hashes --upgrade --python-version 3.11 \
	  --no-annotate --custom-compile-command "make lock" --constraints - -o requirements.lock pyproject.toml

clean:
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* build dist site doc/tags python/*.egg-info
	find .ci python rplugin tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: environment stylua pyright demo test slow branches neovims wheels bounds fuzz guests lint check format bench endurance man release address screens site lock clean
