# Each target makes the virtual environment it needs: Python 3.11 to 3.14 and make are enough.

PYTHON ?= python3
BIN := .venv/bin
# It advises what was typed: targets.
TAGCALL := TAGCALL_BY_MAKE=1 $(BIN)/tagcall
# `uv` installs in a few seconds what takes `pip` a minute; `pip` does where `uv` cannot, as with an index of its own settings.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
UV := $(BIN)/uv pip install --python $(BIN)/python --constraint constraints.txt
# $(call step,WHAT,COMMANDS): one line, which on a terminal says how far it is; what the commands said only if they fail.
step = { { $(2); } 2>&1 </dev/null; echo "status $$?"; } | what="$(1)" sh -c "$$STEP"
define STEP
began=$$(date +%s) count= said= status=1
printf '%s ...' "$$what"
while IFS= read -r line; do
  case $$line in
    "status "*) status=$${line#status } ;;
    *) said="$$said$$line
"; [ ! -t 1 ] || printf '\r\033[K%s ... %.50s' "$$what" "$$line" ;;
  esac
  case $$line in Installed*) set -- $$line; count="$$2 $$3, " ;; esac
done
[ ! -t 1 ] || printf '\r\033[K%s ...' "$$what"
[ $$status = 0 ] || count="failed after "
echo " $$count$$(($$(date +%s) - began)) s"
[ $$status = 0 ] || printf '%s' "$$said"
exit $$status
endef
export STEP
# $(call install,WHAT,EXTRAS,GROUPS): extras and dependency groups with blanks between them, for a comma ends an argument.
empty :=
comma := ,
these = --editable $(if $(2),'.[$(subst $(empty) $(empty),$(comma),$(2))]',.) $(addprefix --group ,$(3))
# pip knows groups from 25.1 on.
install = @$(call step,$(1),$(PIP) --quiet uv && $(UV) $(these) || { $(PIP) --upgrade 'pip>=25.1' && $(PIP) $(these); }) && touch $@ \
  || { echo "This needs PyPI, or another package registry: look at your network and its proxy, then try again."; exit 1; }

# A program that is started a hundred times by the tests is not compiled each time, whatever the surrounding says.
unexport PYTHONDONTWRITEBYTECODE

# The tests of `make test`: all that needs nothing else installed.
CORE := not (agents or browser or clients or codex or growth or install or llama or redis or whole)

# One process more than cores: a fifth of its time each waits for programs that its tests have started.
WORKERS ?= $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))

# For `make test-newest`: the newest Python that starts here, of pyenv's as well. NEWEST_PYTHON=PATH takes another.
NEWEST_PYTHON ?= $(shell for minor in 14 13 12 11; do for python in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python; \
  do $$python -c '' 2>/dev/null && echo $$python && break 2; done; done)

# For `make test-oldest`: the extras that it takes old as well. The tests' own packages want a newer `openai` than `demo`.
OLDEST := grammars otel pdf redis

# Programs that `make test-codex` runs, besides the one from PyPI.
CODEX_VERSIONS := 0.89.0 0.171.0
NPM_CODEX := node_modules/@openai/codex/bin/codex.js
newest = $(or $(NEWEST),$(shell npm view @openai/codex version))
# JavaScript clients and coding agents that the tests run.
CLIENTS := tests/end_to_end/clients
AGENTS := tests/end_to_end/agents

# `make pyz`: the file that it makes, and what is in it besides the server.
PYZ := dist/tagcall.pyz
EXTRAS := demo,pdf,redis

.PHONY: help pyz release-check release-pins demo serve login doctor setup test test-newest test-oldest test-properties test-codex codex-newest test-clients test-llama test-redis test-growth test-install mutants lint format docs site plugin-pages screenshots bench bench-compare bench-peers soak storm eval-model real-model codex-versions clients agents clean

demo: .venv/.demo        ## one whole tool loop on recorded answers
	@$(TAGCALL) demo

help:                    ## all of these, a line each
	@sed -n 's/^\([a-z-]*\):.*  *## /\1 /p' Makefile | while read -r name what; do printf '%-16s %s\n' "$$name" "$$what"; done

serve: .venv/.codex      ## the server
	@$(TAGCALL) serve

login: .venv/.codex      ## log in, by codex's own login
	@$(TAGCALL) login

doctor: .venv/.codex     ## find out what works and what does not
	@$(TAGCALL) doctor

setup: .venv/.codex      ## log in, try everything, and show what to enter in a plugin
	@$(TAGCALL) setup

test: .venv/.dev         ## the core of the test suite, in a few processes: all that needs nothing else installed
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m '$(CORE)'

test-newest: .venv/.dev  ## the core in an environment of its own: the newest Python here, and the newest of all packages
	@rm -rf .newest && $(BIN)/uv venv --quiet --seed --python $(NEWEST_PYTHON) .newest
	@$(BIN)/uv pip install --quiet --upgrade --python .newest --editable '.[codex,demo,pdf,redis]' --group dev
	@.newest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m '$(CORE)'

test-oldest: .venv/.dev  ## the core in an environment of its own: the oldest packages that pyproject.toml allows
	@rm -rf .oldest && $(BIN)/uv venv --quiet --seed --python $(BIN)/python .oldest
	@$(BIN)/uv pip compile --quiet --python .oldest --no-deps --resolution lowest-direct $(OLDEST:%=--extra %) \
	  --output-file .oldest/constraints.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --python .oldest --constraint .oldest/constraints.txt \
	  --editable '.[$(subst $(empty) $(empty),$(comma),codex demo $(OLDEST))]' --group dev
	@.oldest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m '$(CORE)'

test-properties: .venv/.dev  ## the property tests of the core once more, each with many examples, and whole what it samples
	@TAGCALL_TEST_EXAMPLES=200 $(BIN)/python -m pytest -n $(WORKERS) --timeout=1800 -m '(hypothesis or whole) and not (growth or redis)'

test-codex: .venv/.dev codex-versions  ## the tests of the core with a codex program, with others than the one from PyPI
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'codex and not (growth or whole)'

codex-newest: .venv/.dev codex-versions  ## npm's newest codex beside these: what its protocol gained and lost, and the same tests on it; NEWEST=0.172.0 for that one
	@$(MAKE) --no-print-directory .node/$(newest)/installed
	@$(BIN)/python -m tests.codex_schema .node/$(lastword $(CODEX_VERSIONS))/$(NPM_CODEX) .node/$(newest)/$(NPM_CODEX)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'codex and not growth' -k $(newest)

test-clients: .venv/.dev ## the tests with JavaScript clients, in Node.js and in Chromium, and with coding agents
	@$(BIN)/python -m pytest -n $(WORKERS) -m 'agents or browser or clients'

test-llama: .venv/.dev .venv/.model  ## the tests with llama.cpp's own server and a small model that they make
	@$(BIN)/python -m pytest -n $(WORKERS) -m llama

test-redis: .venv/.dev .venv/.servers  ## the tests with real Redis and Valkey servers
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m redis

test-growth: .venv/.dev  ## the tests that compare CPU times, one after the other
	@$(BIN)/python -m pytest -m growth

test-install: .venv/.dev .venv/.install  ## the tests that build the wheel and install it, with what they need from PyPI
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m install

mutants: .venv/.mutants  ## whether the tests notice a change of the code: ROOM=proxy/turn for one room, NTH=3 for a tenth
	@rm -rf mutants/prompts/templates  # mutmut renews nothing but Python
	@$(BIN)/mutmut run $(if $(ROOM)$(NTH),'$(subst /,.,$(ROOM))*$(NTH)')
	@$(BIN)/python -m tests.mutants

lint: .venv/.dev .venv/.imports  ## style, types, layers, pages
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/rumdl check --quiet README.md docs
	@$(BIN)/mypy
	@.venv/imports/bin/lint-imports

format: .venv/.dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/rumdl fmt --quiet README.md docs

docs: .venv/.dev         ## rewrite the pages that are made from code
	@$(BIN)/python -m tests.settings_page > docs/reference/settings.md

site: .venv/.site        ## the pages as a site in build/site, with every link and anchor checked
	@rm -rf build/pages && mkdir -p build/pages && cp -R README.md docs build/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file .ci/mkdocs.yml

screenshots: .venv/.dev  ## the pictures of the README and the docs, on recorded answers; wants `make clients` and Chromium
	@$(BIN)/python -m tests.screenshots

plugin-pages: .venv/.dev ## the pages of the Obsidian plugins against their sources: CHECKOUTS="NAME=FOLDER ..."
	@$(BIN)/python -m tests.plugin_pages $(CHECKOUTS) $(ARGS)

pyz: .venv/.install      ## all of it in one file, for this system and this Python; EXTRAS=codex,demo to have codex in it
	@rm -rf $(PYZ).packages && mkdir -p $(dir $(PYZ))
	@$(call step,$(PYZ),{ $(UV) --target $(PYZ).packages '.[$(EXTRAS)]' || $(PIP) --target $(PYZ).packages '.[$(EXTRAS)]'; } \
	  && $(BIN)/shiv --compile-pyc --console-script tagcall --python '/usr/bin/env python3' --output-file $(PYZ) --site-packages $(PYZ).packages)
	@rm -rf $(PYZ).packages

release-check: .venv/.dev .venv/.release  ## all of a release but its publication (docs/releasing.md)
	@rm -rf dist && $(BIN)/uv build --quiet --require-hashes --build-constraints .ci/release.txt --out-dir dist .
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/python -m tests.release

bench: .venv/.dev        ## what parser and proxy cost beside a floor, measured in one run
	@$(BIN)/python -m tests.bench

bench-compare: .venv/.dev  ## the same for the commit REF and this checkout, in turn
	@$(BIN)/python -m tests.bench.compare $(REF)

bench-peers: .venv/.peers  ## SGLang's parser on the same texts; downloads its package (40 MB) from PyPI into .venv/peers
	@.venv/peers/bin/python -m tests.bench.peers

soak: .venv/.dev         ## attacks, and a quarter of an hour of load, clients that leave, and crashes
	@$(BIN)/python -m tests.attacks
	@$(BIN)/python -m tests.soak

storm: .venv/.dev .venv/.servers  ## 300 tool loops over two servers behind nginx, of which one is killed every ten seconds
	@$(BIN)/python -m tests.storm $(ARGS)

eval-model: .venv/.model ## `tagcall eval` on a real model: MODEL=PATH of its GGUF, more in ARGS
	@$(BIN)/python -m tests.real_model eval $(MODEL) $(ARGS)

real-model: .venv/.model ## which calls a real model copies from notes, likewise
	@$(BIN)/python -m tests.real_model copies $(MODEL) $(ARGS)

codex-versions: $(CODEX_VERSIONS:%=.node/%/installed)  ## more codex programs to test with; needs npm

.node/%/installed:
	@mkdir -p $(@D)
	@npm install --prefix $(@D) --no-save --no-audit --no-fund --loglevel=error @openai/codex@$*
	@touch $@

clients: $(CLIENTS)/node_modules/.installed  ## the JavaScript clients to test with; needs npm

$(CLIENTS)/node_modules/.installed: $(CLIENTS)/package.json
	@npm install --prefix $(CLIENTS) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

agents: $(AGENTS)/node_modules/.installed    ## the coding agents to test with; needs npm

$(AGENTS)/node_modules/.installed: $(AGENTS)/package.json
	@npm install --prefix $(AGENTS) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
	  || { echo "tagcall needs Python 3.11 to 3.14: call make with PYTHON=python3.13, for instance."; exit 1; }
	@$(call step,A Python environment in .venv,$(PYTHON) -m venv .venv)

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What the demo needs,demo)

.venv/.codex: .venv/bin/python pyproject.toml constraints.txt
	$(call install,tagcall and the codex program,codex)

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What the tests need,codex demo,dev)

.venv/.install: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What installs it in the tests,,install)

# Only these are held to hashes: pip refuses hashes where tagcall itself is installed as editable.
.venv/.release: .venv/bin/python .ci/release.txt
	@$(call step,What builds and checks a release,$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --requirement .ci/release.txt) && touch $@

release-pins: .venv/.install  ## write the versions and hashes of what builds and checks a release anew
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command 'make release-pins' --constraint constraints.txt --group release --output-file .ci/release.txt

# Apart from the rest: with it comes Rich, which structlog loads wherever it is, at each start of a server in the tests.
.venv/.imports: .venv/bin/python pyproject.toml constraints.txt
	@$(call step,What checks imports,$(PIP) --quiet uv && $(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/imports \
	  && $(BIN)/uv pip install --python .venv/imports/bin/python --constraint constraints.txt --group imports) && touch $@

.venv/.site: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What makes the site,,site)

.venv/.mutants: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What changes the code for the tests,codex demo,dev mutants servers)

.venv/.servers: .venv/bin/python pyproject.toml constraints.txt
	$(call install,Redis and Valkey,codex,servers)

.venv/.model: .venv/bin/python pyproject.toml constraints.txt
	$(call install,llama.cpp,codex,model)

# Without what SGLang depends on: its parser wants no GPU.
.venv/.peers: .venv/bin/python constraints.txt
	@$(call step,SGLang's parser,$(PIP) --quiet uv && $(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/peers \
	  && $(BIN)/uv pip install --python .venv/peers/bin/python --no-deps 'sglang==0.5.23' 'partial-json-parser==0.2.1.1.post7' \
	  && $(BIN)/uv pip install --python .venv/peers/bin/python --constraint constraints.txt msgspec orjson pydantic) && touch $@

# All that `.ci/run` tests with, in one go.
CI := dev install servers model site
.venv/.ci: .venv/bin/python pyproject.toml constraints.txt
	$(call install,What the suites need,codex demo,$(CI)) && touch $(CI:%=.venv/.%)

clean:
	@rm -rf .venv .newest .oldest .cache .node $(CLIENTS)/node_modules $(AGENTS)/node_modules build dist mutants
