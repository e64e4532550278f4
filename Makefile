# make demo   install and play a scenario end to end
# make test   install what tests need and run everything
# make check  ruff, mypy --strict and the fast tests, within a minute; run before each commit
# make aiohttp-oldest  the tests of the server with the oldest aiohttp allowed; part of `make test`
# make bench  all benchmarks
# make mutants  how many of 300 changes of the code the fast tests notice; takes half an hour
# make upstreams  build llama-cpp-python, which takes minutes, and test recording from its server

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# CI installs exactly what constraints.txt names; anybody else gets the newest that fits.
LOCK := $(if $(CI),-c constraints.txt,)

# Clients that run under Node; without npm their tests skip and say so.
NODE_CLIENTS := $(patsubst %/package.json,%/node_modules/.installed,$(wildcard tests/clients/*/package.json tests/conformance/node/package.json tests/upstreams/*/package.json))

# Clients whose dependencies do not agree with the others' have environments of their own.
APART := $(patsubst tests/conformance/%_env/requirements.txt,.venv-%/.installed,$(wildcard tests/conformance/*_env/requirements.txt))

# llama.cpp's server, to be recorded; where there is no wheel of it its tests skip and say so.
LLAMA := .venv-llama/.installed

# Other pytest plugins that mock LLMs, beside which ours has to work.
OTHERS := .venv-collisions/.installed

# The oldest aiohttp that is allowed; where it cannot be installed, nothing runs with it.
OLDEST := .venv-aiohttp/.installed

# What is used is compiled once, and not in each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test aiohttp-oldest ready check bench mutants upstreams lint types lock clean

demo: $(VENV)/.installed
	$(BIN)/mockllm demo

test:
	@$(MAKE) --no-print-directory --jobs 4 ready
	$(BIN)/python -m pytest -n 2 --dist worksteal
	@$(MAKE) --no-print-directory aiohttp-oldest

# Without the tests of SDKs, which are not installed there, and of recorders that are killed.
aiohttp-oldest: $(OLDEST)
	@if test -e $(OLDEST); then .venv-aiohttp/bin/python -m pytest -n 2 --dist worksteal tests/server \
		--ignore tests/server/test_recording_clients.py --ignore tests/server/test_killed_recorder.py \
		--ignore tests/server/test_responses_items.py; \
	else echo "the oldest aiohttp is not here; the tests with it are skipped"; fi

# Everything that the tests need; what takes time here is fetching and unpacking.
ready: $(VENV)/.installed-test $(NODE_CLIENTS) $(APART) $(OTHERS) $(OLDEST) $(LLAMA)

check: $(VENV)/.installed-test lint types
	$(BIN)/python -m pytest -n 2 --dist loadfile -q -m "not slow" --hypothesis-profile=fast --ignore tests/clients

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=pytest_plugin $(BIN)/lint-imports --no-logo

types: $(VENV)/.installed-test
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

mutants: .venv-mutants/.installed
	.venv-mutants/bin/python -m tools.mutants

upstreams: $(VENV)/.installed-test $(LLAMA) .venv-llama_python/.installed
	$(BIN)/python -m pytest tests/upstreams

tests/%/node_modules/.installed: tests/%/package.json
	@if command -v npm >/dev/null; then \
		cd tests/$* && npm install --no-audit --no-fund --no-package-lock && touch node_modules/.installed; \
	else echo "npm is not here; the tests with tests/$* will skip"; fi

.venv-%/.installed: tests/conformance/%_env/requirements.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet -r $<
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

$(OLDEST): tests/server/aiohttp_env/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-aiohttp
	@if .venv-aiohttp/bin/python -m pip install --quiet --no-compile -r $< -e .; then touch $@; \
	else echo "the oldest aiohttp cannot be installed; the tests with it will skip"; fi

# mutmut runs a copy of mockllm, so mockllm itself is not installed there, only what its tests need.
# (A .pth file that is found through another one is not read, so not that of mockllm either.)
.venv-mutants/.installed: $(VENV)/.installed-test
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet 'mutmut>=3.8,<3.9' $(LOCK)
	@$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(.venv-mutants/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/tests.pth
	@touch $@

lock: $(VENV)/.installed-test
	$(BIN)/pip freeze --exclude-editable | grep -v ' @ ' | sed "1i # What CI installs; \`make lock\` writes this file." > constraints.txt

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e . $(LOCK)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed constraints.txt
	$(BIN)/python -m pip install --quiet --no-compile -e '.[test,dev,speed,reload,compression]' $(LOCK)
	@touch $@
