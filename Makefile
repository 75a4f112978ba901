# What a developer types; `make` alone lists it. Each target sets up what it needs in .venv, once: stamp files there
# remember it. Nothing is needed beforehand but Python with venv, make and git; with a C compiler it all runs faster.

# The first Python that is new enough, in .venv. `make test PYTHON=python3.13` takes another, in .venv-3.13; a PYTHON of the
# environment is taken for .venv, when it is first made.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
    $(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
VENV := .venv
ifeq ($(origin PYTHON),command line)
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
endif
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The versions of packages that are installed; `make test CONSTRAINTS=` takes the newest that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
INSTALL := $(PIP) install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable

# What the demonstration simulates, and which cases the benchmark measures (`python -m bench list`; none named: most).
DEMO ?= examples/demo/week.jsonl
BENCH ?=
# How the tests run, and which of them run a second time on the hot modules as plain Python.
PARALLEL := --numprocesses auto --dist worksteal
PYTEST ?= $(BIN)/python -m pytest $(PARALLEL)
INTERPRETED ?= tests/core tests/growth tests/sim/test_gauges.py
COVERED ?= tests/checkpoint tests/config tests/constraints tests/core tests/deployment tests/gangs tests/gangs_atomic \
    tests/placement tests/plugins tests/preemption tests/quotachange tests/recording tests/scenarios tests/si tests/sim \
    tests/states tests/cli/test_compare.py tests/cli/test_config_check.py tests/cli/test_verify.py \
    tests/kube/test_importing.py tests/kube/test_quantities.py
# The Pythons that `make test-versions` looks for, and after how many minutes `make test-long` ends (not given: when done).
VERSIONS ?= 3.11 3.12 3.13 3.14
MINUTES ?=

HOT := setup.py tools/prefetch.pxd tools/pxd.py $(shell find src/licorne/core src/licorne/si src/licorne/sim -name '*.py')
IS_COMPILED := $(BIN)/python -c 'import sys; from licorne.core import compiled; sys.exit(not compiled)'
SAY_HOW := $(IS_COMPILED) || echo 'licorne: no C compiler was found, or it failed: everything works, but slower' >&2

.DEFAULT_GOAL := help
.PHONY: help demo kube-demo test controlplane test-kube oracle test-oracle yunikorn test-yunikorn faults coverage test-versions test-lowest test-random test-long test-hostile test-safe check format sizes docs accessibility picture bench bench-all \
    bench-peer compile proto constraints clean-compiled clean
.DELETE_ON_ERROR:

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*##  *\(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
	    printf '  make %-16s %s\n' "$$target" "$$text"; done

# -- setting up ------------------------------------------------------------------------------------------

$(VENV)/made:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo 'licorne needs Python 3.11 or newer; say where it is: make PYTHON=...' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What it takes to run: the dependencies of all parts, and the package in place, with its hot modules compiled if that works.
$(VENV)/run: pyproject.toml $(CONSTRAINTS) $(HOT) | $(VENV)/made
	@echo 'Installing licorne and what it needs into $(VENV); with a C compiler this takes two to five minutes ...'
	@$(INSTALL) '.[all]'
	@$(SAY_HOW)
	@touch $@

# What it takes to develop: the same and the tools. Compiling is left to the target below, which goes on from the last time.
$(VENV)/dev: pyproject.toml $(CONSTRAINTS) | $(VENV)/made
	@echo 'Installing licorne and the development tools into $(VENV) ...'
	@LICORNE_PURE=1 $(INSTALL) '.[dev]'
	@touch $@

$(VENV)/compiled: $(HOT) $(VENV)/dev
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@$(SAY_HOW)
	@touch $@ $(VENV)/run

# -- using -----------------------------------------------------------------------------------------------

demo: $(if $(wildcard $(VENV)/dev),$(VENV)/compiled,$(VENV)/run)  ## Simulate a cluster and its busy week, a sample that ships with licorne
	$(BIN)/licorne simulate $(DEMO)

kube-demo: $(if $(wildcard $(VENV)/dev),$(VENV)/compiled,$(VENV)/run) build/controlplane/bin/kubebox  ## Show licorne on Kubernetes with 100 simulated nodes; needs Go
	@PYTHON=$(CURDIR)/$(BIN)/python controlplane/demo.sh

bench: $(if $(wildcard $(VENV)/dev),$(VENV)/compiled,$(VENV)/run)  ## Measure decisions per second; BENCH="b d" chooses cases
	$(BIN)/python -m bench run $(BENCH)

bench-all: $(if $(wildcard $(VENV)/dev),$(VENV)/compiled,$(VENV)/run)  ## Measure all cases, shapes and policies; takes long
	$(BIN)/python -m bench run all

bench-peer: $(if $(wildcard $(VENV)/dev),$(VENV)/compiled,$(VENV)/run)  ## Measure licorne and yunikorn-core in turn; needs Go
	$(BIN)/python -m bench peer $(BENCH)

# -- developing ------------------------------------------------------------------------------------------

test: $(VENV)/compiled  ## Run the tests, then those of the core again on plain Python; PYTHON=... takes another
	@if $(IS_COMPILED); then \
	    LICORNE_REQUIRE_COMPILED=1 $(PYTEST) && echo 'The same core as plain Python:' && \
	    LICORNE_INTERPRETED=1 $(PYTEST) $(INTERPRETED); \
	else $(PYTEST); fi

test-versions:  ## Run the tests on each Python from 3.11 to 3.14 that is installed
	@passed= failed= missing=; for version in $(VERSIONS); do \
	    if ! python$$version -c '' 2>/dev/null; then missing="$$missing $$version"; \
	    elif $(MAKE) test PYTHON=python$$version; then passed="$$passed $$version"; \
	    else failed="$$failed $$version"; fi; \
	done; \
	echo "passed:$${passed:- none}; failed:$${failed:- none}; not installed:$${missing:- none}"; \
	test -z "$$failed" && test -n "$$passed"

# Left out: what needs tools of its own, the extra mcp, which needs later versions of other packages than the service does, one
# test that looks at frames which gRPC shows only in later versions, and a misspelled command, for which all extras are loaded.
# Later versions of pyparsing warn of how the oldest matplotlib calls them.
test-lowest:  ## Run tests of all parts, uncompiled, with the oldest versions of the packages that licorne needs
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	sed -n -e '/^dependencies/,/^all =/s/^ *"\([a-z0-9.-]*\)>=\([^"]*\)".*/\1==\2/p' \
	    -e 's/^ *"\(pytest-xdist\)>=\([^"]*\)".*/\1==\2/p' pyproject.toml | sort -rV | \
	    awk -F== '!seen[$$1]++' >.venv-lowest/versions
	LICORNE_PURE=1 .venv-lowest/bin/python -m pip --quiet install --editable '.[all,report]' \
	    httpx hypothesis 'pyparsing<3.3' pytest pytest-randomly pytest-timeout pytest-xdist --constraint .venv-lowest/versions
	LICORNE_INTERPRETED=1 .venv-lowest/bin/python -m pytest $(PARALLEL) tests/core tests/config tests/si tests/sim tests/cli tests/rest \
	    tests/service tests/kube tests/answers tests/recording tests/checkpoint tests/report \
	    --ignore tests/rest/test_schemathesis.py --ignore tests/service/test_proto.py --ignore tests/cli/test_mcp.py \
	    --deselect tests/rest/test_debug.py::test_stacks_of_threads_and_tasks \
	    --deselect 'tests/cli/test_front_door.py::test_wrong_usage_is_status_2[arguments1]'

test-random: $(VENV)/compiled  ## Run the tests with examples from a new seed; LICORNE_SEED=... takes one of before
	LICORNE_HYPOTHESIS=random $(PYTEST)

test-long: $(VENV)/compiled  ## Run all tests, with many more examples; takes long, or MINUTES=30 at most
	LICORNE_HYPOTHESIS=long LICORNE_MINUTES=$(MINUTES) $(PYTEST) -m '' --timeout 7200

# The control plane is built once; Go is needed.
controlplane: build/controlplane/bin/kubebox  ## Build a Kubernetes control plane for tests, from Go modules; six minutes

build/controlplane/bin/kubebox: controlplane/build.sh controlplane/kubebox/go.mod controlplane/kubebox/main.go
	@echo 'Building etcd, kube-apiserver, kube-controller-manager, kwok and kubectl; the first time this takes minutes ...'
	@controlplane/build.sh $(@D)

test-kube: $(VENV)/compiled build/controlplane/bin/kubebox  ## Run the tests of licorne kube, those on a real control plane too
	$(PYTEST) tests/kube
	$(BIN)/python -m pytest tests/kube/test_end_to_end.py
	LICORNE_YUNIKORN_EVENTS=1 $(BIN)/python -m pytest tests/kube/test_end_to_end.py

# The program that asks kube-scheduler's plugins is built once; Go is needed.
oracle: build/oracle/oracle  ## Build the program that asks kube-scheduler's filter plugins, from Go modules; four minutes

build/oracle/oracle: $(wildcard oracle/*.go) oracle/go.mod oracle/go.sum
	@command -v go >/dev/null || { echo 'The program is built from Go modules, and there is no go on the PATH.' >&2; exit 3; }
	@echo 'Building the filter plugins of kube-scheduler; the first time this takes minutes ...'
	@mkdir -p $(@D) && cd oracle && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../$@ .

# New cases each time, beyond the recorded ones; the seed is printed.
test-oracle: $(VENV)/compiled  ## Compare verdicts with those of kube-scheduler on some thousand new cases; needs Go
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory build/oracle/oracle && \
	    LICORNE_ORACLE_CASES=$${LICORNE_ORACLE_CASES:-3000} $(PYTEST) tests/kube/test_verdicts.py; \
	else echo 'skipped: there is no go on the PATH, so kube-scheduler cannot be asked'; fi

# A running YuniKorn, to dump and to record from, is built once; Go is needed.
yunikorn: build/yunikorn/yunikorn  ## Build yunikorn-core with its REST server for tests, from Go modules; two minutes

build/yunikorn/yunikorn: $(wildcard yunikorn/*.go) yunikorn/stub.s yunikorn/go.mod yunikorn/go.sum
	@command -v go >/dev/null || { echo 'The program is built from Go modules, and there is no go on the PATH.' >&2; exit 3; }
	@echo 'Building yunikorn-core with its REST server; the first time this takes two minutes ...'
	@mkdir -p $(@D) && cd yunikorn && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../$@ .

test-yunikorn: $(VENV)/compiled  ## Run the tests beside a running yunikorn-core; needs Go
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory build/yunikorn/yunikorn && $(PYTEST) tests/yunikorn; \
	else echo 'skipped: there is no go on the PATH, so there is no yunikorn-core to run beside'; fi

# In a copy: the tree itself keeps what it has compiled.
test-safe:  ## Run tests of the core compiled with checks of bounds, of None and of integer overflow
	rm -rf build/safe && mkdir -p build/safe
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar -C build/safe --extract
	cd build/safe && LICORNE_SAFE=1 $(MAKE) compile && $(BIN)/python -m pytest $(PARALLEL) -k 'not a_planted_fault_is_caught' \
	    tests/core tests/parity tests/si tests/reference tests/machine tests/sim/test_gauges.py tests/sim/test_scenarios.py

faults: $(VENV)/compiled  ## Plant all faults of the tests, and print by what each is caught, and after how many examples
	@cd tests && PYTHONPATH=.:../src:.. ../$(BIN)/python -m planted_faults

# On plain Python, and without planted faults, which are planted in processes of their own.
coverage: $(VENV)/dev  ## Measure which lines and branches of core, config, si and sim the tests reach; fail below a bound
	LICORNE_INTERPRETED=1 $(BIN)/python -m coverage run -m pytest --timeout 900 -k 'not planted' $(COVERED)
	$(BIN)/python -m coverage report --skip-covered

test-hostile: $(VENV)/compiled  ## Attack the service: 120,000 messages and requests, 300 schedules of faults; an hour or more
	LICORNE_HYPOTHESIS=random LICORNE_FUZZ=50000 LICORNE_SCHEMATHESIS=20000 LICORNE_FAULTS=300 \
	    $(BIN)/python -m pytest --timeout 7200 \
	    tests/service/test_fuzz.py tests/service/test_faults.py tests/rest/test_schemathesis.py

check: $(VENV)/dev  ## Check style, types, imports, format, and the files that a host of the repository reads
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/lint-imports --no-cache --config .importlinter-runtime
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github/workflows

sizes: $(VENV)/dev  ## Build the wheel, and measure what an installation of it brings, without and with each extra
	rm -rf build/wheel build/lib build/lib.*
	@$(PIP) wheel --no-deps --wheel-dir build/wheel .
	$(BIN)/python tools/sizes.py build/wheel/*.whl

# -W: a warning, such as a link that leads nowhere inside the site, is an error; all of them are shown.
docs: $(VENV)/dev  ## Make the documentation site, build/docs/html, without a network; a dead link is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/docs/trees . build/docs/html
	@echo "build/docs/html/docs/index.html; links to other hosts, not called: build/docs/external-links.txt"

# The checker is an npm package; the browser is the system's, such as Debian's package `chromium`. Both are for tests alone.
AXE := build/axe/node_modules/axe-core/axe.min.js
$(AXE):
	@command -v npm >/dev/null || { echo 'The checker axe-core is an npm package, and there is no npm on the PATH.' >&2; exit 3; }
	npm install --silent --no-audit --no-fund --no-save --prefix build/axe axe-core@4.14.1

accessibility: $(VENV)/dev $(AXE)  ## Look for what bars people from the pages, with axe-core; needs npm and Chromium
	$(PYTEST) tests/site/test_accessibility.py

picture: $(VENV)/compiled  ## Make the pictures in README and of reports
	$(BIN)/python tools/picture.py
	$(BIN)/python tools/report_pictures.py

format: $(VENV)/dev  ## Format the code, and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

compile: $(VENV)/dev  ## Compile the hot modules that changed, in place; fail if that fails
	LICORNE_REQUIRE_COMPILED=1 $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $(VENV)/compiled $(VENV)/run

proto: $(VENV)/dev  ## Make of the proto files what server reflection reads
	cd src && ../$(BIN)/python -m grpc_tools.protoc -I . --descriptor_set_out=licorne/service/proto/si.binpb licorne/service/proto/*.proto

constraints: $(VENV)/made  ## Choose anew the versions of all packages, the newest that pyproject.toml allows: constraints.txt
	LICORNE_PURE=1 $(PIP) install --dry-run --ignore-installed --report $(VENV)/report.json '.[dev]'
	$(BIN)/python tools/constraints.py $(VENV)/report.json

clean-compiled:  ## Remove what was compiled: the hot modules then run as plain Python
	find src \( -name '*.so' -o -name '*.pyd' -o -name '*.pxd' \) -delete
	rm -rf build

clean: clean-compiled  ## Remove everything that was made, .venv and .venv-* too
	rm -rf .venv .venv-* dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
