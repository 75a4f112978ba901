#!/bin/bash
# Builds e2e-scheduling (90 MB) from Go modules: Kubernetes' own specs of SIG Scheduling, and of dynamic resource allocation.
# Needs Go 1.26 and its module proxy; with an empty build cache some minutes of processor time and 1 GB of memory.
#
#     build.sh [FOLDER]      FOLDER is build/conformance of the repository unless given
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${1:-$here/../build/conformance}")
mkdir -p "$out"
cd "$here"
CGO_ENABLED=0 go build -p "${JOBS:-2}" -trimpath -buildvcs=false -ldflags "-s -w" -o "$out/e2e-scheduling" .
echo "$("$out/e2e-scheduling" --list-tests | grep -c "sig-scheduling\|DRA") specs"
