# Two commands need nothing but JDK 17+, Maven and Python 3.11+ with its shared library: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
JAR := dist/quotahost.jar
JAVA_SOURCES := $(shell find java-shim/src/main java-shim/pom.xml -type f) plugin/quotahost/broker/host/probe.py plugin/quotahost/broker/host/protocol.py plugin/quotahost/cli/doctor/installation.py
CONNECTOR := plugin/quotahost/pipeline/spark/jars/.done
WORKERS ?= 5
MVN := mvn -q -B -f java-shim/pom.xml

.DEFAULT_GOAL := help
.PHONY: help build wheel demo lock test test-java test-python test-brokers test-spark test-child test-pipeline test-long test-clients test-lowest test-matrix lint format tables docs bench clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: $(VENV)/.done $(JAR) wheel ## Make .venv, dist/quotahost.jar, and the wheel and the bill of materials beside it

# The lock names every package by its hash; the sources themselves need no package more. Compiled is what is imported.
# -qq: an old pip warns of how it builds pyspark, which is no news for whoever builds quotahost. Errors are shown.
$(VENV)/.done: pyproject.toml requirements.lock
	@echo "environment: $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -qq --no-compile --require-hashes -r requirements.lock
	@$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

$(JAR): $(VENV)/.done $(JAVA_SOURCES) tools/jar_resources.py
	@echo "attach libraries, and the jar: org.jpype and the shim"
	@rm -rf java-shim/target/classes # what no source makes any more must not be packed
	@$(BIN)/python tools/jar_resources.py
	@$(MVN) -DskipTests package
	@mkdir -p dist plugin/quotahost/_jar
	@cp java-shim/target/quotahost.jar $(JAR)
	@cp $(JAR) plugin/quotahost/_jar/quotahost.jar

$(CONNECTOR): tools/spark-connector.xml
	@echo "jars of Spark's Kafka connector"
	@rm -rf $(@D)
	@mvn -q -B -f $< process-resources
	@touch $@

wheel: $(JAR) $(CONNECTOR)
	@$(PIP) wheel -q --no-deps --no-build-isolation -w dist .
	@$(BIN)/python -m tools.sbom

lock: $(VENV)/.done ## Renew requirements.lock: UPGRADE=--upgrade takes the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra dev \
		$(UPGRADE) pyproject.toml -o requirements.lock

demo: build ## A real broker with Python quotas, live changes, a full disk; two minutes. SPARK=1: then Spark's part
	@SPARK=$(SPARK) $(BIN)/python -m demo

test: build ## Lint, Java tests, Python tests on real brokers; not those of test-pipeline, test-long and test-clients
	@$(MAKE) --no-print-directory -j 2 lint test-java
	@$(MAKE) --no-print-directory test-python

test-java: $(VENV)/.done
	@$(BIN)/python tools/jar_resources.py
	@mvn -B -ntp -f java-shim/pom.xml test

# The brokers' tests compute a third of their time, so five workers fill two cores. Spark's tests, beside them, have one
# of these: a second Spark would cost the start and the compiling of a second JVM.
test-python: $(JAR) $(CONNECTOR)
	@$(MAKE) --no-print-directory -j 2 test-brokers test-spark

# A test that hangs is named and its worker ended, before the whole run is cut off; none takes a fifth of this by itself.
HANGS := --timeout 300 --timeout-method thread --max-worker-restart 0

# A file's tests share its broker: one worker each. The order is kept, as the broker's files come first and take longest.
test-brokers:
	@$(BIN)/python -m pytest -q -n $$(( $(WORKERS) > 1 ? $(WORKERS) - 1 : 1 )) --dist loadfile --no-loadscope-reorder $(HANGS) --ignore tests/pipeline tests examples

test-spark:
	@$(BIN)/python -m pytest -q $(HANGS) tests/pipeline

test-child: $(JAR) ## Tests of failing plugins, starts, stops, live changes and client quotas, with Python in a process of its own; five to ten minutes
	@PROCESS=child $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/broker/host tests/broker/quotas

test-pipeline: $(JAR) $(CONNECTOR) ## Tests that `make test` leaves out: Spark drivers killed, doubled, robbed of their checkpoint, and three brokers; minutes
	@$(BIN)/python -m pytest -q -m driver tests/pipeline

test-long: $(JAR) wheel ## Tests that `make test` leaves out: long scenes, mostly of several brokers; minutes
	@$(BIN)/python -m pytest -q -m long tests

test-clients: $(JAR) ## Tests that `make test` leaves out: eight client libraries through a PAUSE; renews docs/clients.md; needs Go and npm; 6 minutes
	@$(BIN)/python -m pytest -q -s -m clients tests/clients
	@$(BIN)/python -m tests.clients.table

LOWEST := build/lowest
test-lowest: $(JAR) ## Unit tests with the oldest versions of libraries that quotahost admits; three minutes
	@$(BIN)/uv venv -q --clear --python $(BIN)/python $(LOWEST)
	@$(BIN)/uv pip install -q --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[quotas,spark]'
	@$(BIN)/uv pip install -q --python $(LOWEST)/bin/python hypothesis jsonschema pytest pytest-timeout pytest-xdist
	@$(LOWEST)/bin/python -m pytest -q -n $(WORKERS) $(HANGS) --disable-warnings tests/unit --ignore tests/unit/docs

test-matrix: wheel ## Installs and runs the wheel on Debian's systems with Python 3.11 to 3.14, on aarch64 and musl; needs root, debootstrap, qemu-user-static; half an hour
	@$(BIN)/python -m tools.matrix

lint: $(VENV)/.done ## Formatting, lint, strict types, import rules
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.done ## Rewrite what the formatter would
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

tables: $(VENV)/.done ## Renew the tables of the documents that the code and the tests make
	@$(BIN)/python -m tools.tables

docs: $(VENV)/.done ## Build the documentation site into build/site, without a network; open build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

bench: build ## Figures, as ratios against a peer in the same run; minutes each
	@$(BIN)/python -m bench

clean: ## Forget all that was built
	@rm -rf $(VENV) build dist java-shim/target plugin/quotahost/_jar plugin/quotahost/pipeline/spark/jars
