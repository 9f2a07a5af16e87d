# Two commands: `make run` and `make test`. Everything else they need is set up on the way.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin

.PHONY: setup run test check format paper campaigns choice peers test-peers bench lock clean

setup: $(VENV)/ready

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("glasses needs Python 3.11 or newer, this is %d.%d: set PYTHON=/path/to/python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup
	$(BIN)/glasses demo

test: check
	$(BIN)/python -m pytest -n 2

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The peers (BoTorch, Optuna) need torch and live in their own environment.
$(PEERS)/ready: requirements-peers.lock requirements.lock pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-peers.lock
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

peers: $(PEERS)/ready

test-peers: peers
	$(PEERS)/bin/python -m pytest tests_peers

# Tables and figures of docs/paper.md from the results in the tree: about a minute.
paper: setup
	$(BIN)/glasses paper all --out docs/paper --page docs/paper.md

# Those results again, hours: results/*.jsonl (resumable), then the small files in the tree. Ours first, then the peers.
campaigns: setup peers
	$(BIN)/glasses paper run
	$(PEERS)/bin/glasses paper run nine
	for suite in fair nine samples protocol; do \
		$(BIN)/glasses campaign table $$suite --rows src/glasses/reproduction/results/$$suite.csv; done

# The campaign that chose the default planner (docs/how_to_choose.md), a day of two cores; its tables come from the stored rows.
choice: setup peers
	for batch in first:1000 last:2000; do \
		$(BIN)/glasses campaign run development --first-seed $${batch#*:} && \
		$(PEERS)/bin/glasses campaign run development --first-seed $${batch#*:} && \
		$(BIN)/glasses campaign table development --first-seed $${batch#*:} \
			--rows src/glasses/reproduction/results/development-$${batch%:*}.csv; done
	$(BIN)/glasses campaign choice --out docs --page docs/how_to_choose.md

bench: peers
	$(PEERS)/bin/python -m bench

lock: setup
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
		--no-emit-trusted-host --no-header --all-extras -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) $(PEERS) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
