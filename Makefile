# Two commands do everything: `make run` and `make test`. `make help` lists the others.
#
# Set-up (the .venv, the build of llama.cpp, Qt's system libraries) is one step that is over at
# once when nothing changed; its logic is in packaging/setup/bootstrap.py.

PYTHON ?= python3
GPU    ?=
REAL   ?=
ARGS   ?=

BIN       := .venv/bin
BOOTSTRAP := command -v $(PYTHON) > /dev/null || { \
    echo "set-up: there is no $(PYTHON) here; Draftscope needs Python 3.11 or later." >&2; \
    echo "        Install it, or name another: make run PYTHON=python3.12" >&2; exit 1; }; \
  $(PYTHON) packaging/setup/bootstrap.py --gpu "$(GPU)"

# The window stays off the screen in tests, and neither llama.cpp's threads spin nor numpy's multiply
# on cores that other tests share. Compiled modules are kept, whatever the environment says: every worker
# and every engine process would compile them anew.
TEST_ENV := QT_QPA_PLATFORM=offscreen GOMP_SPINCOUNT=1000 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

PYTEST   := $(TEST_ENV) $(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 1

.DEFAULT_GOAL := help
.PHONY: help run test tests verify faults coverage lint format lock clean peer \
        bench bench-overhead bench-sampling bench-same-text bench-audit bench-drafting bench-peer bench-window bench-startup bench-rules \
        bench-length bench-strategies bench-rollback bench-suite bench-scroll bench-timeline bench-opening \
        bench-advice advice-table lessons screenshots package package-test ready ready-dev

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

ready:
	@$(BOOTSTRAP) app

ready-dev:
	@$(BOOTSTRAP) dev

run: ready ## start Draftscope; GPU=cuda|vulkan|metal|hip|none picks the backend, ARGS="..." goes to it
	@exec $(BIN)/python -m app $(ARGS)

test: ## lint, every test but the long grid, and same texts on other kernels; ARGS="-n0" runs one by one
	@$(MAKE) --no-print-directory -j2 lint tests  # at once: types are checked on one core

tests: ready-dev
	@$(PYTEST) $(ARGS)
	@echo "Tests that compare generated texts, again on other kernels:"
	@$(PYTEST) $(ARGS) -m "same_text and not verify" --other-kernels || [ $$? -eq 5 ]  # 5: ARGS names none of them

verify: ready-dev ## the long grid, every strategy, k, sampler and model against the baseline; and properties by chance
	@$(TEST_ENV) $(BIN)/python -m pytest -m "verify or hypothesis" --hypothesis-profile=chance \
	  -o faulthandler_timeout=0 tests/ $(ARGS)

faults: ready-dev ## damaged and hostile files by the thousand through all that opens them; ARGS="100" takes fewer
	@$(TEST_ENV) $(BIN)/python -m tests.faults $(ARGS)

coverage: ready-dev ## fail where no test takes a branch of the loop's heart any more (pyproject.toml lists its files)
	@$(TEST_ENV) $(BIN)/coverage run -m pytest -q tests/engine/loop tests/engine/record tests/engine/rules \
		tests/engine/sampling tests/engine/explain/test_decision.py tests/ui/inspector/test_round.py $(ARGS)
	@$(BIN)/coverage report

lint: ready-dev ## ruff, mypy and the import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: ready-dev ## let ruff rewrite the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: ## all benchmarks
bench: bench-overhead bench-sampling bench-drafting bench-peer bench-window bench-startup bench-rules bench-length \
       bench-strategies bench-rollback bench-suite bench-scroll bench-timeline bench-opening

bench-overhead: ready-dev ## cost of the loop around llama.cpp
	@$(BIN)/python tests/benchmarks/overhead.py $(ARGS)

bench-same-text: ready-dev ## whether drafting changes a drawn text (hours; a run that was ended continues)
	@$(BIN)/python tests/benchmarks/same_text.py $(ARGS)

bench-audit: ready-dev ## faults planted in the engine that the audit finds, and none where there is none (10 minutes)
	@$(BIN)/python tests/benchmarks/audit.py $(ARGS)

bench-sampling: ready-dev ## what a row costs to a drawn token, against llama.cpp's own samplers
	@$(BIN)/python tests/benchmarks/sampling.py $(ARGS)

bench-drafting: ready-dev ## what drafting without a model costs, against llama-cpp-python's prompt lookup
	@$(BIN)/python tests/benchmarks/drafting.py $(ARGS)

bench-peer: ready-dev ## against llama.cpp's own speculative loop (compiles it first)
	@peer=$$($(PYTHON) packaging/setup/peer.py llama-speculative-simple) && \
	  DRAFTSCOPE_PEER="$$peer" $(BIN)/python tests/benchmarks/peer.py $(ARGS)

bench-window: ready-dev ## how the window keeps up with streamed tokens
	@$(BIN)/python tests/benchmarks/ui/window.py $(ARGS)

bench-scroll: ready-dev ## how long the transcript takes to paint
	@$(BIN)/python tests/benchmarks/ui/transcript_scroll.py $(ARGS)

bench-timeline: ready-dev ## how long the Inspector's timeline takes to paint
	@$(BIN)/python tests/benchmarks/ui/timeline.py $(ARGS)

bench-opening: ready-dev ## how long a trace of 100,000 tokens takes to open, and a step through it
	@$(BIN)/python tests/benchmarks/ui/opening.py $(ARGS)

bench-startup: ready-dev ## time from start to a usable window
	@$(BIN)/python tests/benchmarks/ui/startup.py $(ARGS)

bench-rules: ready-dev ## tokens/s and acceptance of speculative, match and block side by side, on two pairs (8 minutes)
	@$(BIN)/python tests/benchmarks/rules.py $(ARGS)

bench-length: ready-dev ## length=auto and ewma against the baseline and the best fixed length (15 minutes)
	@$(BIN)/python tests/benchmarks/length.py $(ARGS)

bench-strategies: ready-dev ## every strategy on every category of prompt, on two pairs (10 minutes)
	@$(BIN)/python tests/benchmarks/strategies.py $(ARGS)

bench-advice: ready-dev ## the regret of advice, Tune and length=auto on the kept table (seconds)
	@$(BIN)/python tests/benchmarks/advice/score.py $(ARGS)

advice-table: ready-dev ## measure that table on a quiet machine (25 minutes); a run that was ended continues
	@$(BIN)/python tests/benchmarks/advice/measure.py $(ARGS)

bench-rollback: ready-dev ## what taking drafts back costs on memories that cannot be cut
	@$(BIN)/python tests/benchmarks/rollback.py $(ARGS)

bench-suite: ready-dev ## a suite of 3 lanes and 40 prompts, its engine killed twice: every run comes
	@$(BIN)/python tests/benchmarks/long_suite.py $(ARGS)

peer: ready ## compile llama.cpp's own speculative loop and llama-server (ten minutes or more); prints their paths
	@$(PYTHON) packaging/setup/peer.py

lessons: ready ## record the lessons' answers anew, and say which sentence is no longer true; ARGS names lessons, ARGS=texts records none
	@$(BIN)/python packaging/lessons/record.py $(ARGS)

screenshots: ready-dev ## take the documents' pictures from the running window; ARGS names scenes
	@$(BIN)/python -m tests.screenshots $(ARGS)

package: ready ## a bundle for machines without Python: tarball, one file that runs, wheel; REAL=1 adds SmolLM2
	@PYTHONPATH=packaging/setup:packaging/bundle $(BIN)/python -m package $(if $(REAL),--real)

package-test: ready ## try what make package (REAL=1) made in a system without Python and compiler (Linux)
	@PYTHONPATH=packaging/setup:packaging/bundle $(BIN)/python -m linux.trial $(if $(REAL),--real)

lock: ## resolve the libraries anew and write packaging/locks
	@$(PYTHON) packaging/setup/lock.py

clean: ## remove what was made here (built wheels stay in the cache)
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov
	@find app tests packaging -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
