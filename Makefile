# make demo   install and play a scenario end to end
# make test   install what tests need and run everything
# make check  ruff, mypy --strict and the fast tests; run before each commit
# make bench  all benchmarks

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# CI installs exactly what constraints.txt names; anybody else gets the newest that fits.
LOCK := $(if $(CI),-c constraints.txt,)

.PHONY: demo test check bench lint types lock clean

demo: $(VENV)/.installed
	$(BIN)/mockllm demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/.installed-test lint types
	$(BIN)/python -m pytest -n 2 -q -m "not slow"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

lock: $(VENV)/.installed-test
	$(BIN)/pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e . $(LOCK)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed constraints.txt
	$(BIN)/python -m pip install --quiet -e '.[test,dev,speed,reload]' $(LOCK)
	@touch $@
