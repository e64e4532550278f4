# make demo   install and play a scenario end to end
# make check  lint, import rules, types and the quick tests, run before each commit
# make test   install what tests need, then lint, import rules, types and all tests but the heavy
#             ones, whose number it prints; some ten minutes on two cores
# make alone  clone the commit into an empty folder, collect all tests there, and run those that look
#             for recorded traffic beside the checkout: they skip; a minute or two
# make test-all  all of that and the tests that need heavy tool chains (Go, Java, Rust, llama.cpp),
#             every client of docs/clients.md, and mutation; an hour; run before a release
# make aiohttp-oldest  the tests of the server with the oldest aiohttp allowed; part of both
# make conformance  measure all clients of docs/clients.md again; takes an hour
# make gateways   measure the gateways of docs/gateways.md again; takes half an hour
# make agents  install the coding agents of tests/coding_agents, which take 1.5 GB; `make test-all` runs them
# make gateways-ready  install the gateways of mockllm/conformance/gateways/presets.yaml, each in an environment of its own
# make load-ready  install the load-test tools of docs/load-tests.md, but GuideLLM, which takes 6 GB:
#             make .venv-load-guidellm/.installed
# make load   measure the load-test tools that are installed again; takes some minutes
# make site   the whole report on these clients, into build/site
# make docs   the documentation as a site, into build/docs
# make release-check  build what a release publishes, and try it in a new environment
# make bench  all benchmarks
# make mutants  how many of 300 changes in all wings the quick tests of each wing notice; 20 minutes
# make upstreams  build llama-cpp-python, which takes minutes, and test recording from its server

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Exactly what constraints.txt names, on every machine: pip 23, which Python 3.11 brings, needs minutes
# to choose versions of what the tests use, and stops at some. `make NEWEST=1 test` takes the newest.
LOCK := $(if $(NEWEST),,-c constraints.txt)

# Clients that run under Node; without npm their tests skip and say so.
NODE_CLIENTS := $(patsubst %/package.json,%/node_modules/.installed,$(wildcard tests/clients/*/package.json measurements/clients/package.json tests/js/package.json tests/site/package.json tests/upstreams/*/package.json))

# Clients whose dependencies do not agree with the others' have environments of their own. That of
# the frameworks and that of CrewAI are large: only `make conformance-ready` installs them, and without them tests skip.
ENVIRONMENTS := $(patsubst measurements/clients/%/requirements.txt,.venv-%/.installed,$(wildcard measurements/clients/*/requirements.txt))
LARGE := .venv-frameworks/.installed .venv-crewai/.installed
APART := $(filter-out $(LARGE),$(ENVIRONMENTS))

# Gateways between clients and services, with exact versions of all that they bring: releases of one
# stole credentials. Some of them are large, so only `make gateways-ready` and `make test-all` install them.
GATEWAYS := $(patsubst measurements/gateways/%/requirements.txt,.venv-gw-%/.installed,$(wildcard measurements/gateways/*/requirements.txt)) \
	$(patsubst %/package-lock.json,%/node_modules/.installed,$(wildcard measurements/gateways/*/package-lock.json))

# Load-test tools, with exact versions of all that they bring.
LOAD_TOOLS := .venv-load-locust/.installed .venv-load-aiperf/.installed

# llama.cpp's server, to be recorded; where there is no wheel of it its tests skip and say so.
LLAMA := .venv-llama/.installed

# Other pytest plugins that mock LLMs, beside which ours has to work.
OTHERS := .venv-collisions/.installed

# A browser, and what stands around several servers: `command:package` of Debian. Where they cannot
# be installed, the tests with them skip and say so. HEAVY are the tool chains of further runners.
DEBIAN := chromium:chromium chromedriver:chromium-driver nginx:nginx redis-server:redis-server \
	docker-compose:docker-compose
HEAVY := go:golang-go javac:default-jdk-headless cargo:cargo
APT := --yes -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20

# Schemas of compose files and Kubernetes' resources, which take 100 MB; without them tests skip.
SCHEMAS := .venv-schemas/.installed

# What builds the site, and checks packages for an index.
SITE := .venv-site/.installed

# The oldest aiohttp that is allowed; where it cannot be installed, nothing runs with it.
OLDEST := .venv-aiohttp/.installed

# What is used is compiled once, and not in each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

# Four processes for two cores: a third of a test's time is waiting for programs that it started.
# No test is timed by this: one that waits for ever fails by name, in place of the whole run.
PYTEST := -n 4 --dist worksteal --timeout 900
in_parts = $(BIN)/python -m tests.in_parts
# The quick tests wait for nothing, and none is so long that another worker had better take it.
QUICK := -n auto --dist worksteal --timeout 900

.PHONY: demo test alone test-all aiohttp-oldest aiohttp-oldest-all ready ready-all debian conformance-ready gateways-ready gateways load-ready agents load conformance site docs release-check check bench mutants upstreams lint types lock clean

demo: $(VENV)/.installed
	$(BIN)/mockllm demo

test: lint types
	@$(MAKE) --no-print-directory --jobs 4 ready
	@$(in_parts) 4 -m "not heavy"
	@$(MAKE) --no-print-directory aiohttp-oldest

# With this checkout's environment, so that nothing is installed twice; the clone's code comes first.
alone: $(VENV)/.installed-test
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && git clone --quiet . "$$folder/mockllm" && \
	cd "$$folder/mockllm" && export PYTHONPATH="$$PWD:$$PWD/pytest_plugin" && \
	{ $(abspath $(BIN))/python -m pytest --collect-only -q > ../collected || { tail -50 ../collected; exit 1; }; } && \
	tail -1 ../collected && \
	$(abspath $(BIN))/python -m pytest $(PYTEST) -m "corpus and not heavy" tests

test-all: lint types
	@$(MAKE) --no-print-directory --jobs 4 ready-all
	@$(in_parts) 4 --hypothesis-profile=thorough
	@$(MAKE) --no-print-directory aiohttp-oldest-all
	$(BIN)/python -m tools.kit_mutants
	@$(MAKE) --no-print-directory mutants

# What mockllm uses of aiohttp without a promise, and the server itself.
aiohttp-oldest: $(OLDEST)
	@$(call with_oldest,tests/serve/server/test_aiohttp_internals.py tests/serve/server/test_server.py)

# Without the tests of SDKs, which are not installed there, and of recorders that are killed.
aiohttp-oldest-all: $(OLDEST)
	@$(call with_oldest,tests/serve/server --ignore tests/serve/server/browser_fetch \
		--ignore tests/serve/server/recording/test_recording_clients.py \
		--ignore tests/serve/server/recording/test_killed_recorder.py \
		--ignore tests/serve/server/recording/test_websockets.py \
		--ignore tests/serve/server/test_responses_items.py --ignore tests/serve/server/test_signals.py \
		--ignore tests/serve/server/test_hostile_schemas.py)

with_oldest = if test -e $(OLDEST); then .venv-aiohttp/bin/python -m pytest $(PYTEST) $(1); \
	else echo "the oldest aiohttp is not here; the tests with it are skipped"; fi

# Everything that `make test` needs; what takes time here is fetching and unpacking.
ready: debian $(VENV)/.installed-test $(NODE_CLIENTS) $(APART) $(OTHERS) $(OLDEST) $(SCHEMAS) $(SITE)

ready-all: conformance-ready gateways-ready load-ready agents $(LLAMA) .venv-llama_python/.installed .venv-mutants/.installed
	@$(MAKE) --no-print-directory debian DEBIAN="$(DEBIAN) $(HEAVY)"

# Everything that the clients of docs/clients.md need; the frameworks take minutes.
conformance-ready: ready $(ENVIRONMENTS)

gateways-ready: $(GATEWAYS)

load-ready: $(LOAD_TOOLS)

agents: tests/coding_agents/node_modules/.installed

debian:
	@missing=$$(for pair in $(DEBIAN); do command -v $${pair%:*} >/dev/null || printf '%s ' $${pair#*:}; done); \
	if test -z "$$missing"; then exit 0; fi; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq $(APT) update \
		&& DEBIAN_FRONTEND=noninteractive apt-get -qq $(APT) install --no-install-recommends $$missing >/dev/null; \
	then echo "installed $$missing"; \
	else echo "not here, and not installed: $$missing; the tests with them will skip"; fi

check: lint types
	$(BIN)/python -m pytest $(QUICK) -q -m "not slow" --hypothesis-profile=fast

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=pytest_plugin $(BIN)/lint-imports --no-logo

types: $(VENV)/.installed-test
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	@for file in measurements/benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

mutants: .venv-mutants/.installed
	.venv-mutants/bin/python -m tools.mutants

upstreams: $(VENV)/.installed-test $(LLAMA) .venv-llama_python/.installed
	$(BIN)/python -m pytest tests/upstreams

# With NEWEST the clients that are measured are the newest; Node itself is the one that is named.
newest_of = $(if $(NEWEST),$(if $(filter measurements/%,$1),--no-save $$(node -p \
	'Object.keys(require("./package.json").dependencies).filter(n => n != "node").map(n => n + "@latest").join(" ")')))

%/node_modules/.installed: %/package.json
	@if command -v npm >/dev/null; then \
		cd $* && npm install --no-audit --no-fund --no-package-lock $(call newest_of,$*) && touch node_modules/.installed; \
	else echo "npm is not here; the tests with $* will skip"; fi

# Nothing that a package wants to run at its installation is run.
measurements/gateways/%/node_modules/.installed: measurements/gateways/%/package-lock.json
	@if command -v npm >/dev/null; then \
		cd measurements/gateways/$* && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules/.installed; \
	else echo "npm is not here; the tests with $* will skip"; fi

# Measures all clients again; then the page, the overview and the site show it.
conformance: conformance-ready
	$(BIN)/python -m measurements.measure
	$(BIN)/python -m measurements.measure --faults
	$(BIN)/python -m measurements.page
	$(BIN)/python -m measurements.fault_page

gateways: gateways-ready
	$(BIN)/python -m measurements.measure_gateways
	$(BIN)/python -m measurements.gateway_page

load: load-ready
	$(BIN)/python -m measurements.measure_load

# The whole report, with a page for each case that a client gets wrong.
site: $(VENV)/.installed-test
	$(BIN)/mockllm report measurements/results/*.json -o build/site

# The site of the documentation; a dead link or anchor fails it.
docs: $(SITE)
	$(BIN)/python -m tools.docs_site

$(SITE): tools/site/requirements.txt $(VENV)/.installed-test
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet --no-compile -r $<
	@touch $@

# What a release publishes; TAG is that of the release. Nothing is published.
release-check: $(SITE)
	.venv-site/bin/python -m tools.release_check $(if $(TAG),--tag $(TAG))

.venv-%/.installed: measurements/clients/%/requirements.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --no-compile $(if $(NEWEST),$$(sed -n 's/==.*//p' $<),-r $<)
	@touch $@

.venv-load-%/.installed: measurements/load/%/requirements.txt
	$(PYTHON) -m venv .venv-load-$*
	.venv-load-$*/bin/python -m pip install --quiet --no-compile --only-binary :all: --no-deps -r $<
	@touch $@

.venv-gw-%/.installed: measurements/gateways/%/requirements.txt
	$(PYTHON) -m venv .venv-gw-$*
	.venv-gw-$*/bin/python -m pip install --quiet --no-compile --only-binary :all: --no-deps -r $<
	@touch $@

$(LLAMA): tests/upstreams/llama_env/requirements.txt
	$(PYTHON) -m venv .venv-llama
	@if .venv-llama/bin/python -m pip install --quiet --no-compile --only-binary :all: -r $<; then touch $@; \
	else echo "there is no llama.cpp for this machine; the tests with it will skip"; fi

.venv-llama_python/.installed: tests/upstreams/llama_python_env/requirements.txt
	$(PYTHON) -m venv .venv-llama_python
	.venv-llama_python/bin/python -m pip install --quiet -r $<
	@touch $@

$(OTHERS): tests/plugin/collisions_env/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-collisions
	.venv-collisions/bin/python -m pip install --quiet --no-compile -r $< -e .
	@touch $@

$(OLDEST): tests/serve/server/aiohttp_env/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-aiohttp
	@if .venv-aiohttp/bin/python -m pip install --quiet --no-compile -r $< -e .; then touch $@; \
	else echo "the oldest aiohttp cannot be installed; the tests with it will skip"; fi

$(SCHEMAS): tests/deployment/schemas_env/requirements.txt
	$(PYTHON) -m venv .venv-schemas
	@if .venv-schemas/bin/python -m pip install --quiet --no-compile -r $<; then touch $@; \
	else echo "the schemas cannot be installed; the tests with them will skip"; fi

# mutmut runs a copy of mockllm, so mockllm itself is not installed there, only what its tests need.
# (A .pth file that is found through another one is not read, so not that of mockllm either.)
.venv-mutants/.installed: $(VENV)/.installed-test
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet 'mutmut>=3.8,<3.9' $(LOCK)
	@$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(.venv-mutants/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/tests.pth
	@touch $@

lock: $(VENV)/.installed-test
	$(BIN)/pip freeze --exclude-editable | grep -v ' @ ' | sed "1i # What the Makefile installs; \`make NEWEST=1 lock\` in a fresh clone writes this file." > constraints.txt

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e . $(LOCK)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed constraints.txt
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' # the first that knows groups
	$(BIN)/python -m pip install --quiet --no-compile -e '.[all]' --group test --group dev $(LOCK)
	@touch $@
