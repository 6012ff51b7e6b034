# Everyday commands. Each works on a fresh machine that has Python 3.11 or newer, pip and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
ZCBOR := .venv-zcbor
AUDIT := .venv-audit
DIST ?= dist
SHIPPED := edge flash cloud java embedded-broker
FLINK := .venv-flink
TYPINGS := .typings
PORTS := rp2 esp32
BOARD_CODE := $(addprefix -p ,whenabouts_edge.board whenabouts_hardware whenabouts_protocol) \
  $(addprefix -m whenabouts_edge.,rules.evaluate group.detection group.membership group.peers group.process)
NODE := .node
BOARDS := firmware_sim/whenabouts_sim/boards
SEED ?=
SPEED ?=
TRACE ?=
SIZES ?=
FOLDER ?=

# Tests and the demonstration start hundreds of Pythons, which would each compile every module that they import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-deep fuzz soak audit sbom lint types docs bench bench-edge bench-correlation bench-frames bench-cep bench-latwin bench-spark bench-scale bench-year bench-dashboard broker test-programs lock clean seed-is-a-number

help:  ## Show these targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/.ready  ## Make the virtual environment .venv with the locked versions and this project in it.

SUBSTITUTES := requirements-java.lock requirements-embedded-broker.lock

$(VENV)/.ready: requirements.lock $(SUBSTITUTES) pyproject.toml
	@$(PYTHON) tools/set_up.py all

# The smaller part of it that the demonstration needs.
$(VENV)/.demo-ready: requirements-demo.lock $(SUBSTITUTES) pyproject.toml
	@$(PYTHON) tools/set_up.py demo

# Before the set-up, which takes a minute.
seed-is-a-number:
	@case "$(SEED)" in *[!0-9]*) echo "SEED: found $(SEED), expected a whole number, as in SEED=7" >&2; exit 2;; esac

demo: seed-is-a-number $(VENV)/.demo-ready  ## Run two simulated sites through agents, broker, ingest and Spark. SEED=7 SPEED=2 TRACE=capture.jsonl
	@$(BIN)/whenabouts-sim demo $(if $(SEED),--seed $(SEED)) $(if $(SPEED),--speed $(SPEED)) $(if $(TRACE),--trace "$(TRACE)")

# Packages that stand in for Java and mosquitto are tested also where those are installed.
$(VENV)/.substitutes-ready: $(SUBSTITUTES) | setup
	@for lock in $(SUBSTITUTES); do \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r $$lock || exit 1; done
	@touch $@

TESTED := setup test-programs $(VENV)/.substitutes-ready $(ZCBOR)/.ready $(NODE)/.ready $(PORTS:%=$(TYPINGS)/%/.ready)
TEST := $(BIN)/python -m pytest -n 3 --dist loadscope

test: $(TESTED)  ## Run every test; installs mosquitto, systemd and Chromium by apt when they are missing and this is root.
	$(TEST)

test-deep: seed-is-a-number $(TESTED) $(AUDIT)/.ready  ## Search three times as far as tests state, with the tests that `make test` leaves out. SEED=7 repeats a run.
	@seed=$${SEED:-$$(shuf -i 1-999999 -n 1)}; echo "make test-deep SEED=$$seed repeats this run"; \
	  WHENABOUTS_DEEP=$$seed $(TEST) --hypothesis-seed=$$seed --timeout=3600

MINUTES ?= 5
fuzz: seed-is-a-number setup  ## Check decoders, readers, rule parser and ingest with mutated inputs. MINUTES=5 SEED=7 TARGET=batch
	@PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(TARGET:%=--target %)

soak: seed-is-a-number setup broker  ## Run two sites with two ingests and Spark for 30 minutes, killed at random, and judge the result. MINUTES=5 SEED=7
	@$(BIN)/whenabouts-sim soak --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES)) $(if $(SEED),--seed $(SEED))

lint: setup  ## Format check, lint, strict types, those of boards too, and the manual without a warning.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory types docs

types: setup $(PORTS:%=$(TYPINGS)/%/.ready)  ## Strict types, with what CPython has and with what boards have.
	$(BIN)/mypy
	@for port in $(PORTS); do \
	  echo "mypy, with what $$port has"; \
	  MYPYPATH=$(TYPINGS)/$$port $(BIN)/mypy --config-file edge/typings/mypy.ini --custom-typeshed-dir $(TYPINGS)/$$port \
	    --cache-dir .mypy_cache/$$port $(BOARD_CODE) || exit 1; \
	done

docs: setup  ## Build the manual to docs/_build/html; a warning is an error.
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html

bench: setup broker  ## Measure agent and ingest beside what one would pick instead, and under attack; prints ratios, asserts nothing.
	@for bench in agent ingest attacks; do $(BIN)/python tests/bench/bench_$$bench.py || exit 1; done

bench-edge: setup broker $(NODE)/.ready  ## Measure the gateway: decoders against their lines, the agent's rate, delay and memory, a board's rate.
	@for bench in edge boards; do $(BIN)/python tests/bench/bench_$$bench.py || exit 1; done

bench-correlation: setup  ## Measure the correlation beside DuckDB, Polars and plain Spark, the same answers checked.
	@for bench in correlation operators streaming_join spark; do $(BIN)/python tests/bench/bench_$$bench.py || exit 1; done

bench-frames: setup  ## Measure `wa.correlate` on frames of each kind beside the array kernel, the same answers checked.
	@$(BIN)/python tests/bench/bench_frames.py

bench-cep: setup $(FLINK)/.ready  ## Measure event patterns beside DuckDB and Flink (needs Java), the same answers checked.
	@for bench in cep cep_count; do $(BIN)/python tests/bench/bench_$$bench.py || exit 1; done

bench-spark: setup  ## Measure Spark jobs beside a bare scan and the bare engines: batches, streams, delay from landed to published.
	@$(BIN)/python tests/bench/bench_jobs.py

bench-scale: setup  ## Measure jobs over 10^6, 10^7 and 10^8 readings: time, memory of all processes. SIZES="1e6 1e7" FOLDER=/disk
	@$(BIN)/python tests/bench/bench_scale.py $(if $(SIZES),--sizes $(SIZES)) $(if $(FOLDER),--folder "$(FOLDER)")

bench-year: setup  ## Measure a landing as it is after a year: files, sizes, triggers, merging, deleting. Takes two minutes.
	@$(BIN)/python tests/bench/bench_year.py

bench-dashboard: setup test-programs  ## Measure the dashboard in Chromium: a day of 10^8 readings, 10 000 a second live, idle. MINUTES=10, keeps 1 GB in .bench
	@$(BIN)/python tests/bench/bench_dashboard.py --minutes $(if $(filter file,$(origin MINUTES)),10,$(MINUTES))

bench-latwin: setup  ## Measure windows over groups beside the paper's algorithm, the same answers checked.
	@for bench in latwin latwin_detector latwin_walk latwin_spark; do $(BIN)/python tests/bench/bench_$$bench.py || exit 1; done

# Programs that are no packages of Python, as program:package of Debian.
BROKER := mosquitto:mosquitto mosquitto_pub:mosquitto-clients
SERVICE := systemd-analyze:systemd
BROWSER := chromium:chromium

define install-programs
	@PATH="$$PATH:/usr/sbin"; missing=; for one in $(1); do \
	  command -v "$${one%:*}" >/dev/null || missing="$$missing $${one#*:}"; \
	done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$missing"; apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; \
	else echo "missing, and only root can install it: apt-get install$$missing"; exit 1; fi
endef

broker:
	$(call install-programs,$(BROKER))

test-programs:
	$(call install-programs,$(BROKER) $(SERVICE) $(BROWSER))

# What a board has instead of CPython's standard library, as types.
$(TYPINGS)/%/.ready: edge/typings/%.txt | setup
	@rm -rf $(TYPINGS)/$*
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps --target $(TYPINGS)/$* -r $<
	@touch $@

# zcbor needs an older cbor2 than the project: it gets an environment of its own.
$(ZCBOR)/.ready: protocol/zcbor-requirements.txt
	@test -x $(ZCBOR)/bin/python || $(PYTHON) -m venv $(ZCBOR)
	@$(ZCBOR)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r protocol/zcbor-requirements.txt
	@touch $@

# The MicroPython of simulated boards, as the lock file names it. Node 18 or newer is used where it is; else it comes as a wheel.
$(NODE)/.ready: $(BOARDS)/package.json $(BOARDS)/package-lock.json $(BOARDS)/node-requirements.txt
	@mkdir -p $(NODE) && cp $(BOARDS)/package.json $(BOARDS)/package-lock.json $(NODE)/
	@if ! { command -v npm && $(PYTHON) $(BOARDS)/node_vm.py; } >/dev/null 2>&1; then \
	  echo "node: found no Node 18 or newer with npm; installing one in $(NODE)/venv"; \
	  test -x $(NODE)/venv/bin/python || $(PYTHON) -m venv $(NODE)/venv; \
	  $(NODE)/venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r $(BOARDS)/node-requirements.txt; fi
	@cd $(NODE) && PATH="$(CURDIR)/$(NODE)/venv/bin:$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Flink needs older versions of much that the project uses: it gets an environment of its own, for the measurement alone.
$(FLINK)/.ready: tests/bench/peers/flink-requirements.txt
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { \
	  echo "bench-cep: found no java, which Flink needs; on Debian: apt-get install openjdk-17-jre-headless"; exit 1; }
	@echo "bench-cep: Flink in $(FLINK) (the first time some minutes: 500 MB)"
	@test -x $(FLINK)/bin/python || $(PYTHON) -m venv $(FLINK)
	@$(FLINK)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r tests/bench/peers/flink-requirements.txt
	@touch $@

# Extras with a lock file of their own. All lock files of this project agree in versions.
LOCKED := build edge flash cloud demo java embedded-broker
# The audit and the SBOM need packages that the project does not: they get an environment of their own.
$(AUDIT)/.ready: tools/audit-requirements.txt
	@test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r tools/audit-requirements.txt
	@touch $@

audit: setup $(VENV)/.substitutes-ready $(AUDIT)/.ready  ## Check licences of the locked packages, and known weaknesses where the package index answers.
	@$(BIN)/python tools/audit.py all

# One list for each set of packages that a machine installs, with versions and hashes; the library compares it with the schema.
sbom: $(AUDIT)/.ready  ## Write dist/sbom-*.cdx.json (CycloneDX), a list of the packages of each installation.
	@mkdir -p $(DIST)
	@for extra in $(SHIPPED); do \
	  $(AUDIT)/bin/python -W ignore -m cyclonedx_py requirements requirements-$$extra.lock --pyproject pyproject.toml \
	    --sv 1.6 --output-reproducible --validate -o $(DIST)/sbom-$$extra.cdx.json || exit 1; \
	  echo $(DIST)/sbom-$$extra.cdx.json; done

# Lock files beside those of this project: each is FILE.txt, made from FILE.in.
LOCKED_ASIDE := tools/audit-requirements protocol/zcbor-requirements $(BOARDS)/node-requirements $(PORTS:%=edge/typings/%) tests/bench/peers/flink-requirements
LOCKING := --universal --python-version 3.11 --generate-hashes --quiet --no-header --no-annotate --no-emit-index-url

lock:  ## Renew the lock files from the ranges in pyproject.toml and the .in files (needs uv).
	@renew() { \
	  echo "renewing $$1"; echo "# Exact versions, with hashes. Renewed by \`make lock\`." > .lock.new; \
	  uv pip compile $(LOCKING) $$2 >> .lock.new && mv .lock.new $$1; \
	}; \
	renew .lock.all "pyproject.toml --extra dev --extra java --extra embedded-broker" && \
	renew requirements.lock "pyproject.toml --extra dev --constraints .lock.all" && \
	for extra in $(LOCKED); do renew requirements-$$extra.lock "pyproject.toml --extra $$extra --constraints .lock.all" || exit 1; done && \
	rm .lock.all && \
	for file in $(LOCKED_ASIDE); do renew $$file.txt $$file.in || exit 1; done

clean:  ## Remove environments and what runs have left.
	rm -rf $(VENV) $(ZCBOR) $(AUDIT) .bench dist $(FLINK) $(NODE) $(TYPINGS) demo-out docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
