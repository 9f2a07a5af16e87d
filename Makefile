# Two commands: `make run` and `make test`. Everything else they need is set up on the way.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin

.PHONY: setup run test test-newest quick check format paper campaigns choice peers peers-hebo peers-smac peers-vizier test-peers bench searches packages screenshots docs-outputs site lock lock-peers clean

setup: $(VENV)/ready

$(VENV)/ready: requirements.lock pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("glasses needs Python 3.11 or newer, this is %d.%d: set PYTHON=/path/to/python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	@touch $@

run: setup
	$(BIN)/glasses demo

# Where tests keep their databases: in memory where there is room, since a disk makes them wait.
FOLDER := $(or $(shell df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000 { print "/dev/shm" }'),$(TMPDIR),/tmp)

# Everything; ends with the ten slowest tests. One process more than two cores: some tests wait for others.
test: check
	TMPDIR=$(FOLDER) $(BIN)/python -m pytest -n 3 --dist worksteal --durations=10

# The fast lane: numerics, the loop and one whole study.
QUICK := $(addprefix tests/,numerics gaussian surrogate lookahead search space loop runtime study/test_commands.py)
quick: setup
	TMPDIR=$(FOLDER) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not study" --durations=10 $(QUICK)

# The same tests with the newest versions that the package allows, JAX 0.11 among them (Python 3.12 or newer): nothing is pinned.
NEWEST := .venv-newest
test-newest:
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python scripts/requirements.py > $(NEWEST)/requirements.in
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(NEWEST)/requirements.in
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	$(NEWEST)/bin/python -m pytest -n 3 --dist worksteal --durations=10

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The peers (BoTorch, Optuna) need torch and live in their own environment.
$(PEERS)/ready: requirements-peers.lock requirements.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-peers.lock
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	@touch $@

peers: $(PEERS)/ready

# HEBO, SMAC3 and Vizier: an environment each, .venv-hebo, .venv-smac and .venv-vizier; only HEBO's has torch.
.venv-%/ready: requirements-%.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv .venv-$*
	$(if $(filter hebo,$*),.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0)
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-$*.lock
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	@touch $@

peers-hebo: .venv-hebo/ready
peers-smac: .venv-smac/ready
peers-vizier: .venv-vizier/ready

# The tests of every environment of peers that has been made.
test-peers:
	@test -n "$(wildcard .venv-*/ready)" || { echo "No environment of peers is there: make peers, or peers-hebo, -smac, -vizier."; exit 1; }
	@set -e; for ready in $(wildcard .venv-*/ready); do echo $${ready%/ready}; OMP_NUM_THREADS=1 $${ready%/ready}/bin/python -m pytest lab/tests_peers; done

# Research lives in lab/: its command is glasses-lab, the results it keeps are in lab/results.
# Tables and figures of docs/paper.md from the results in the tree: about a minute.
paper: setup
	$(BIN)/glasses-lab paper all --out docs/paper --page docs/paper.md

# Those results again, hours: results/*.jsonl (resumable), then the small files in the tree. Ours first, then the peers.
campaigns: setup peers
	NPROC=1 $(BIN)/glasses-lab paper run
	NPROC=1 $(PEERS)/bin/glasses-lab paper run nine
	for suite in fair nine samples protocol; do \
		$(BIN)/glasses-lab campaign table $$suite --rows lab/results/$$suite.csv; done

# What the default was chosen on and the last word on it (docs/how_to_choose.md): hours, resumable; the tables come from the
# stored rows. HEBO, SMAC3 and Vizier need environments of their own: make peers-hebo, peers-smac, peers-vizier.
choice: setup peers
	for suite in bbob bbob-last tuning laboratory; do \
		NPROC=1 $(BIN)/glasses-lab campaign run $$suite --methods el,default && \
		NPROC=1 $(PEERS)/bin/glasses-lab campaign run $$suite --methods botorch-logei-exact,optuna-gp,optuna-tpe && \
		$(BIN)/glasses-lab campaign table $$suite --rows lab/results/$$suite.csv; done
	NPROC=1 $(BIN)/glasses-lab campaign run development --first-seed 2000 --methods el,default
	NPROC=1 $(PEERS)/bin/glasses-lab campaign run development --first-seed 2000 --methods botorch-logei-exact,optuna-gp
	$(BIN)/glasses-lab campaign table development --first-seed 2000 --rows lab/results/development.csv
	$(BIN)/glasses-lab campaign choice --page docs/how_to_choose.md

# The pictures of docs/page.md; needs Chromium (scripts/install-chromium).
screenshots: setup
	$(BIN)/python docs/screenshots.py

bench: setup peers
	$(PEERS)/bin/python -m benchmarks

# Searches for scikit-learn's estimators compared: docs/how_to/sklearn.md from docs/searches.jsonl (resumable, ten CPU minutes).
searches: setup
	$(BIN)/python -m benchmarks.searches

# What the code and the commands of the documentation print, and the pictures that they make, as they are now: some minutes.
docs-outputs: setup
	$(BIN)/python -m scripts.outputs

# The wheel and the sdist in fresh environments of every Python found, and installations beside other libraries: docs/compare.md
# (resumable, a quarter of an hour; needs a network).
packages: setup
	$(BIN)/python -m scripts.packages

# The documentation as a site, in build/site: nothing is fetched.
site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open build/site/index.html."

lock: setup
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/python scripts/requirements.py > requirements.in
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
		--no-emit-trusted-host --no-header -o requirements.lock requirements.in
	rm requirements.in

# The pins of the environments that there are, with fresh hashes (minutes: some files are fetched for theirs).
lock-peers: setup
	$(BIN)/python -m pip install --quiet pip-tools
	for ready in $(wildcard .venv-hebo/ready .venv-smac/ready .venv-vizier/ready); do peer=$${ready%/ready}; peer=$${peer#.venv-}; \
		.venv-$$peer/bin/python -m pip freeze --all | $(BIN)/python scripts/hashes.py peers-$$peer > requirements-$$peer.lock; done

clean:
	rm -rf $(VENV) .venv-* .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
