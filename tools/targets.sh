#!/usr/bin/env bash
# Runs the targets of the Makefile one after the other on a fresh clone, as somebody who tries them does. Left out are those
# that are parts of the night themselves, or of the gate, and `bench-all`, which takes hours.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone --quiet "$source" "$scratch/licorne"
cd "$scratch/licorne"
run() {
    printf '\n==== %4ds  %s\n' "$SECONDS" "$*"
    "$@" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
    tail -n 3 "$scratch/out"
}
run make help
run make demo
run .venv/bin/python -m bench list
run make bench BENCH=a
run make kube-demo
run make test
run make bench-peer BENCH=a
for target in check docs sizes accessibility picture compile proto format; do
    run make "$target"
done
git diff --exit-code -- ':!docs/site' # what is made from the code is as it was
run make constraints
run make nightly

run make clean-compiled
run make clean
test -z "$(git status --porcelain --ignored -- src .venv build)"
printf '\nall targets work\n'
