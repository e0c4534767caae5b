# The set-up and the commands that the README names. `make help` lists them.
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
TESTS := $(VENV)/.ready-tests
DOCS := $(VENV)/.ready-docs
LOWEST := .venv-lowest
PIP := -m pip --disable-pip-version-check install --quiet --quiet --progress-bar off
# Tests that ask each library for what it is here for: arrays, solvers, tables, files, a store,
# figures.
OF_LIBRARIES := tests/test_compare.py tests/normalizers/test_decomposition.py \
	tests/engine/test_hessian.py tests/record/test_folder.py tests/record/test_mlflow.py \
	$(addprefix tests/datasets/test_,files.py columns.py labels.py) \
	tests/results/figures/test_figures.py
# Makes a virtual environment. One that is there keeps its Python, whatever python3 is by now; one
# whose Python cannot install is made anew, whole.
define environment
	@if [ ! -e $(1) ]; then python3 -m venv $(1); \
	elif $(1)/bin/python -c "import pip, ssl" 2> /dev/null; then \
		echo "$(1): keeps its $$($(1)/bin/python --version)"; \
	else \
		echo "$(1): its Python cannot install; it is made anew with $$(python3 --version)"; \
		python3 -m venv --clear $(1); \
	fi
endef
# Python keeps what it has compiled, whatever the environment says of it: or else each process of the
# tests would compile them and the project anew, some ten seconds each time.
unexport PYTHONDONTWRITEBYTECODE
# Two processes, a thread each: more threads than cores wait for each other. Where one has run its
# tests, it takes some of the other's.
PROCESSES := 2
PYTEST := OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n $(PROCESSES) --dist worksteal
GALLERY := lecture notes exercises research

.DEFAULT_GOAL := help
.PHONY: help setup compare textbook gallery leaderboard measured test test-lowest slow shell test-all whole check mutants bench docs dashboard clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: $(TESTS) ## make .venv with the tested versions, for comparisons, tests and checks

$(READY): pyproject.toml constraints.txt
	@echo "$(VENV): installs what a comparison needs: 860 MB, 1 to 2 minutes"
	$(call environment,$(VENV))
	@$(PYTHON) $(PIP) -c constraints.txt -e .
	@touch $(READY)

$(TESTS): pyproject.toml constraints.txt
	@echo "$(VENV): installs what a comparison, tests and checks need: 2.2 GB, 1 to 3 minutes"
	$(call environment,$(VENV))
	@$(PYTHON) $(PIP) -c constraints.txt -e '.[test]'
	@touch $(READY) $(TESTS)

$(DOCS): $(READY)
	@echo "$(VENV): adds what the documentation needs: 75 MB, seconds"
	@$(PYTHON) $(PIP) -c constraints.txt -e '.[docs]'
	@touch $(DOCS)

compare: $(READY) ## the default comparison: breast cancer, softmax, three schemes
	@$(VENV)/bin/normbench

# Runs every study of some folders of conf/experiment, and prints a table a folder.
define studies
	@failed=0; for folder in $(1); do \
		for file in conf/experiment/$$folder/*.yaml; do \
			[ -e "$$file" ] || continue; \
			study=$$folder/$$(basename "$$file" .yaml); \
			need=$$(sed -n 's/^# needs \([^ :]*\):.*/\1/p' "$$file"); \
			if [ -n "$$need" ] && [ ! -e "$(or $(DATA),$$NORMBENCH_DATA)/$$need" ]; then \
				echo "$$study: not run, it needs $$need in DATA"; continue; \
			fi; \
			echo "$$study"; \
			$(VENV)/bin/normbench "experiment=$$study" $(if $(DATA),"data_dir='$(DATA)'") || failed=1; \
		done; \
	done; \
	for folder in $(1); do \
		printf '\n%s\n' "$$folder"; \
		$(VENV)/bin/normbench results studies "$$folder" || failed=1; \
	done; \
	exit $$failed
endef

textbook: $(READY) ## the textbook's studies and their table; DATA=FOLDER for data that is there
	$(call studies,textbook)

gallery: $(READY) ## the studies of lecture, notes, exercises and research, and their tables; DATA=FOLDER
	$(call studies,$(GALLERY))

leaderboard: $(READY) ## every scheme on every bundled data set, and who is fastest: 3 minutes
	$(VENV)/bin/normbench dataset=breast_cancer,diabetes,digits,gaussian,iris,wine cost=least_squares \
		'normalizer=glob(*,exclude=[chain,random_rotation])' 'figures=[overview]'
	$(VENV)/bin/normbench results profile --out outputs/leaderboard

measured: $(READY) ## after make textbook and make gallery: what they measured, for the documentation
	@$(PYTHON) docs/measured.py outputs

test: $(TESTS) ## the quick tests
	$(PYTEST) -m "not slow and not commands"

# With as many threads as the libraries take by themselves, and in one process: CI builds the pages
# beside it, and each process would compile the libraries' modules.
test-lowest: $(LOWEST)/.ready ## the tests of libraries, at the lowest versions that pyproject.toml allows
	CI= $(LOWEST)/bin/python -m pytest -m "not slow" -p no:cacheprovider $(OF_LIBRARIES)

$(LOWEST)/.ready: pyproject.toml
	@echo "$(LOWEST): installs the lowest versions that are allowed"
	$(call environment,$(LOWEST))
	@$(LOWEST)/bin/python -m tests.lowest > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python $(PIP) --no-compile -c $(LOWEST)/constraints.txt -e . pytest pytest-xdist
	@touch $@

slow: $(TESTS) ## the tests that take minutes: whole commands, studies, faults, a browser
	$(PYTEST) -m "(slow or commands) and not whole"

shell: $(TESTS) ## the golden commands: what they print, record, draw and leave
	$(PYTEST) tests/shell

test-all: $(TESTS) ## make test and make slow in one run, as CI does: collected and begun once
	$(PYTEST) -m "not whole"

whole: $(TESTS) ## 400 generated mistakes, every fault, a hundred kills, every kernel, sentence and long study: many minutes, not in CI
	$(PYTHON) -m pytest -n 2 -m whole

check: $(TESTS) ## format, lint and types, as pre-commit and CI run them
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m tests.types

docs: $(DOCS) ## the documentation and three reports, to be opened in a browser: a minute, no network
	@$(PYTHON) -m sphinx -q -W --keep-going -b html docs outputs/docs
	@touch outputs/docs/index.html
	@echo "file://$(CURDIR)/outputs/docs/index.html"

dashboard: $(READY) ## MLflow's UI on this machine, with the link to the last comparison
	$(VENV)/bin/normbench dashboard

mutants: $(TESTS) ## lines broken on purpose: which of them no test notices (an hour; not in CI)
	$(PYTHON) -m tests.mutation --sample 40

bench: $(TESTS) ## ours beside the textbook's loop, PyTorch and JAX (those that are installed)
	mkdir -p outputs
	$(PYTHON) -m tests.benchmarks --json outputs/bench.json

clean: ## remove .venv and caches; what is recorded stays
	rm -rf $(VENV) $(LOWEST) .mypy_cache .pytest_cache .ruff_cache *.egg-info
