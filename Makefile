# What a developer types; `make` alone lists it. Each target sets up what it needs in .venv, once: stamp files there
# remember it. Nothing is needed beforehand but Python with venv, make and git; with a C compiler it all runs faster.

# Where this is set, as in many containers, every process would compile all modules anew: half of the time of short ones.
unexport PYTHONDONTWRITEBYTECODE

# The first Python that is new enough, in .venv. `make test PYTHON=python3.13` takes another, in .venv-3.13; a PYTHON of the
# environment is taken for .venv, when it is first made.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
    $(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
VENV := .venv
ifeq ($(origin PYTHON),command line)
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
endif
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The versions of packages that are installed; `make test CONSTRAINTS=` takes the newest that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
AS_CONSTRAINED := $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# $(call INSTALL,PACKAGE): uv is about ten times as fast as pip. It does not read pip's configuration; where that names
# another index and uv finds none, pip does the work.
INSTALL = { $(PIP) install --quiet $(AS_CONSTRAINED) uv && $(BIN)/uv pip install --python $(BIN)/python $(AS_CONSTRAINED) --editable $(1); } || \
    $(PIP) install $(AS_CONSTRAINED) --editable $(1)

# What the demonstration simulates, and which cases the benchmark measures (`python -m bench list`; none named: most).
DEMO ?= examples/demo/week.jsonl
BENCH ?=
# How the tests run, and which of them run a second time on the hot modules as plain Python.
PARALLEL := --numprocesses auto --dist worksteal
PYTEST ?= $(BIN)/python -m pytest $(PARALLEL)
INTERPRETED ?= tests/core tests/sim/test_gauges.py
COVERED ?= tests/checkpoint tests/config tests/constraints tests/core tests/deployment tests/gangs tests/gangs_atomic \
    tests/placement tests/plugins tests/preemption tests/quotachange tests/recording tests/scenarios tests/si tests/sim \
    tests/states tests/topology tests/cli/test_compare.py tests/cli/test_config_check.py tests/cli/test_verify.py \
    tests/kube/test_importing.py tests/kube/test_quantities.py

HOT := setup.py tools/prefetch.pxd tools/pxd.py $(shell find src/licorne/core src/licorne/si src/licorne/sim src/licorne/workload -name '*.py')
IS_COMPILED := $(BIN)/python -c 'import sys; from licorne.core import compiled; sys.exit(not compiled)'
SAY_HOW := $(IS_COMPILED) || echo 'licorne: no C compiler was found, or it failed: everything works, but slower' >&2

.DEFAULT_GOAL := help
.PHONY: help demo kube-demo bench bench-all bench-peer test test-all test-times end-to-end nightly nightly-table controlplane conformance oracle yunikorn coverage \
    lowest safe check sizes docs accessibility picture format compile proto constraints clean-compiled clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*##  *\(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
	    printf '  make %-16s %s\n' "$$target" "$$text"; done

# -- setting up ------------------------------------------------------------------------------------------

$(VENV)/made:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo 'licorne needs Python 3.11 or newer; say where it is: make PYTHON=...' >&2; exit 1; }
	@echo 'Setting up in $(VENV), once: packages are installed, the core is compiled; four minutes on two processors ...'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# What it takes to run: the dependencies of all parts, the package in place, and what compiles its hot modules below.
$(VENV)/run: pyproject.toml $(CONSTRAINTS) | $(VENV)/made
	@echo 'Installing licorne and what it needs into $(VENV) ...'
	@export LICORNE_PURE=1; $(call INSTALL,'.[all]' Cython setuptools)
	@touch $@

# What it takes to develop: the same and the tools.
$(VENV)/dev: pyproject.toml $(CONSTRAINTS) | $(VENV)/made
	@echo 'Installing licorne and the development tools into $(VENV) ...'
	@export LICORNE_PURE=1; $(call INSTALL,'.[dev]')
	@touch $@ $(VENV)/run

# Goes on from the last time. It needs one of the two above, which a target names before this one.
$(VENV)/compiled: $(HOT)
	@echo 'Compiling the core, if there is a C compiler ...'
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@$(SAY_HOW)
	@touch $@

# -- using -----------------------------------------------------------------------------------------------

demo: $(VENV)/run $(VENV)/compiled  ## Simulate a cluster and its busy week, a sample that ships with licorne
	$(BIN)/licorne simulate $(DEMO)

kube-demo: $(VENV)/run $(VENV)/compiled controlplane  ## Show licorne on Kubernetes with 100 simulated nodes; needs Go
	@PYTHON=$(CURDIR)/$(BIN)/python controlplane/demo.sh

bench: $(VENV)/run $(VENV)/compiled  ## Measure decisions per second; BENCH="b d" chooses cases
	$(BIN)/python -m bench run $(BENCH)

bench-all: $(VENV)/run $(VENV)/compiled  ## Measure all cases, shapes and policies; takes long
	$(BIN)/python -m bench run all

bench-peer: $(VENV)/run $(VENV)/compiled  ## Measure licorne and yunikorn-core in turn; needs Go
	$(BIN)/python -m bench peer $(BENCH)

# -- developing ------------------------------------------------------------------------------------------

# What must be compiled, where it is: tests of stale or missing modules would be those of plain Python.
REQUIRED := if $(IS_COMPILED); then export LICORNE_REQUIRE_COMPILED=1; fi

# What `make test PART=...` runs alone: the tests of one of the three parts, of the front door, of a package of
# src/licorne, or of one folder.
scheduler := answers capture checkpoint config constraints core determinism gangs gangs_atomic growth guard machine parity parking \
    placement plugins preemption quotachange recording reference scenarios si sim states tenants topology
laboratory := benchmark report sweep
hosts := demo kube page rest service yunikorn
front := build cli common deployment references samples site
# Packages that no folder is named after.
grpc := demo service
host := rest service
lab := $(laboratory)
state := answers recording
workload := capture scenarios sim
PARTS := $(if $(PART),$(addprefix tests/,$(or $($(PART)),$(PART))))

test: $(VENV)/dev $(VENV)/compiled  ## Run what is run before each commit; five to ten minutes on two processors; PART=kube runs a part, PYTHON=... takes another Python
	@$(REQUIRED); $(PYTEST) $(REPORT:%=--junitxml=%/test.xml) $(PARTS)

test-all: test  ## Run these and the other tests of the gate, and those of the core again on plain Python; twenty minutes
	@$(REQUIRED); $(PYTEST) -m gate $(REPORT:%=--junitxml=%/gate.xml)
	@! $(IS_COMPILED) || LICORNE_INTERPRETED=1 $(PYTEST) $(REPORT:%=--junitxml=%/plain.xml) $(INTERPRETED)

test-times:  ## Run all tests of the gate, and print where the time goes, as Markdown
	@$(MAKE) --no-print-directory test-all REPORT=build/times
	@$(BIN)/python tools/test_times.py build/times/*.xml

# Cases wait most of the time and run at once, so they have a process of their own.
end-to-end: $(VENV)/dev $(VENV)/compiled controlplane  ## Run licorne kube on a real control plane; needs Go
	$(BIN)/python -m pytest -m gate tests/kube/test_end_to_end.py

nightly: $(if $(PART),$(VENV)/dev $(VENV)/compiled)  ## Run what is too long for the gate: PART=...; without it, list the parts
	@python3 tools/nightly.py $(PART)

nightly-table:  ## Show what came of each part of the night, and of which commit
	@python3 tools/nightly.py --table

# Programs of Go modules, which tests start; built once for each state of their sources.
GO_BUILD = sh -c 'cd $(1) && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o "$$0/$(1)" .'

controlplane:  ## Build a Kubernetes control plane for tests, from Go modules; six minutes
	@tools/cached.sh build/controlplane/bin controlplane/build.sh $(wildcard controlplane/kubebox/*.*) -- controlplane/build.sh

conformance:  ## Build Kubernetes' own specs of schedulers, from Go modules; some minutes
	@tools/cached.sh build/conformance $(wildcard conformance/*.go) conformance/go.mod conformance/go.sum -- conformance/build.sh

oracle:  ## Build the program that asks kube-scheduler's filter plugins, from Go modules; four minutes
	@tools/cached.sh build/oracle $(wildcard oracle/*.go) oracle/go.mod oracle/go.sum -- $(call GO_BUILD,oracle)

yunikorn:  ## Build yunikorn-core with its REST server for tests, from Go modules; two minutes
	@tools/cached.sh build/yunikorn $(wildcard yunikorn/*.go) yunikorn/stub.s yunikorn/go.mod yunikorn/go.sum -- $(call GO_BUILD,yunikorn)

# Left out: what needs tools of its own, the extra mcp, which needs later versions of other packages than the service does, and one
# test that looks at frames which gRPC shows only in later versions.
# Later versions of pyparsing warn of how the oldest matplotlib calls them.
lowest:  ## Run tests of all parts, uncompiled, with the oldest versions of the packages that licorne needs
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	sed -n -e '/^dependencies/,/^all =/s/^ *"\([a-z0-9.-]*\)>=\([^"]*\)".*/\1==\2/p' \
	    -e 's/^ *"\(pytest-xdist\)>=\([^"]*\)".*/\1==\2/p' pyproject.toml | sort -rV | \
	    awk -F== '!seen[$$1]++' >.venv-lowest/versions
	LICORNE_PURE=1 .venv-lowest/bin/python -m pip --quiet install --editable '.[all,report]' \
	    httpx hypothesis 'pyparsing<3.3' pytest pytest-randomly pytest-timeout pytest-xdist --constraint .venv-lowest/versions
	LICORNE_INTERPRETED=1 .venv-lowest/bin/python -m pytest $(PARALLEL) tests/core tests/config tests/si tests/sim tests/cli tests/rest \
	    tests/service tests/kube tests/answers tests/recording tests/checkpoint tests/report \
	    --ignore tests/rest/test_schemathesis.py --ignore tests/service/test_proto.py --ignore tests/cli/test_mcp.py \
	    --deselect tests/rest/test_debug.py::test_stacks_of_threads_and_tasks

# On plain Python, and without planted faults, which are planted in processes of their own.
coverage: $(VENV)/dev  ## Measure which lines and branches of core, config, si and sim the tests reach; fail below a bound
	LICORNE_INTERPRETED=1 $(BIN)/python -m coverage run -m pytest -m 'not nightly' -k 'not planted' $(COVERED)
	$(BIN)/python -m coverage report --skip-covered

# In a copy: the tree itself keeps what it has compiled.
safe:  ## Run tests of the core compiled with checks of bounds, of None and of integer overflow
	rm -rf build/safe && mkdir -p build/safe
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar -C build/safe --extract
	cd build/safe && LICORNE_SAFE=1 $(MAKE) compile && $(BIN)/python -m pytest $(PARALLEL) -m 'not nightly' \
	    tests/core tests/parity tests/si tests/reference tests/machine tests/sim/test_gauges.py tests/sim/test_scenarios.py

check: $(VENV)/dev  ## Check style, types, imports, format, and the files that a host of the repository reads
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/lint-imports --no-cache .importlinter-runtime
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github/workflows

sizes: $(VENV)/dev  ## Build the wheel, and measure what an installation of it brings, without and with each extra
	rm -rf build/wheel build/lib build/lib.*
	@$(PIP) wheel --quiet --no-deps --wheel-dir build/wheel .
	$(BIN)/python tools/sizes.py build/wheel/*.whl

# -W: a warning, such as a link that leads nowhere inside the site, is an error; all of them are shown.
docs: $(VENV)/dev  ## Make the documentation site, build/docs/html, without a network; a dead link is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/docs/trees . build/docs/html
	@echo '<meta http-equiv="refresh" content="0; url=docs/">' > build/docs/html/index.html
	@echo "build/docs/html/docs/index.html; links to other hosts, not called: build/docs/external-links.txt"

# The checker is an npm package; the browser is the system's, such as Debian's package `chromium`. Both are for tests alone.
AXE := build/axe/node_modules/axe-core/axe.min.js
$(AXE):
	@command -v npm >/dev/null || { echo 'The checker axe-core is an npm package, and there is no npm on the PATH.' >&2; exit 3; }
	npm install --silent --no-audit --no-fund --no-save --prefix build/axe axe-core@4.14.1

accessibility: $(VENV)/dev $(AXE)  ## Look for what bars people from the pages, with axe-core; needs npm and Chromium
	$(PYTEST) -m "" tests/site/test_accessibility.py

picture: $(VENV)/dev $(VENV)/compiled  ## Make the pictures in README, of reports and of the page
	$(BIN)/python tools/picture.py
	$(BIN)/python tools/report_pictures.py
	$(BIN)/python tools/page_pictures.py

format: $(VENV)/dev  ## Format the code, and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

compile: $(VENV)/dev  ## Compile the hot modules that changed, in place; fail if that fails
	LICORNE_REQUIRE_COMPILED=1 $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $(VENV)/compiled

proto: $(VENV)/dev  ## Make of the proto files what server reflection reads
	cd src && ../$(BIN)/python -m grpc_tools.protoc -I . --descriptor_set_out=licorne/grpc/service/proto/si.binpb licorne/grpc/service/proto/*.proto

constraints: $(VENV)/made  ## Choose anew the versions of all packages, the newest that pyproject.toml allows: constraints.txt
	LICORNE_PURE=1 $(PIP) install --quiet --dry-run --ignore-installed --report $(VENV)/report.json '.[dev]'
	$(BIN)/python tools/constraints.py $(VENV)/report.json

clean-compiled:  ## Remove what was compiled: the hot modules then run as plain Python
	find src \( -name '*.so' -o -name '*.pyd' \) -delete
	rm -rf build

clean: clean-compiled  ## Remove everything that was made, .venv and .venv-* too
	rm -rf .venv .venv-* dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
