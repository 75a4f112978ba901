#!/bin/bash
# Shows licorne at work on Kubernetes: a control plane with 100 simulated nodes, `licorne kube`, and the example of
# examples/kubernetes: two queues, a gang, a preemption, and a pod that waits. Everything is stopped and removed in the end,
# and when it is interrupted. `make kube-demo` runs it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
export BIN=${BIN:-$root/build/controlplane/bin} PYTHON=${PYTHON:-$root/.venv/bin/python}
export NODES=${NODES:-100} PORT=${PORT:-17443} REST=${REST:-127.0.0.1:9080}
RUN=$(mktemp -d -t licorne-kube-demo.XXXXXX)
export RUN KUBECONFIG=$RUN/admin.kubeconfig
licorne=
cd "$root"

down() {
  trap - EXIT INT TERM
  [ -z "$licorne" ] || { kill "$licorne" 2>/dev/null && wait "$licorne" 2>/dev/null; } || true
  WIPE=1 "$here/down.sh"
  printf '\n(everything is stopped and removed, after %s s)\n' "$SECONDS"
}
trap down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n# %s\n' "$*"; }
kubectl() { "$BIN/kubectl" "$@"; }
show() { printf '$ %s\n' "$*"; "$@"; }
# until_so SECONDS COMMAND...: wait until a command prints something.
until_so() {
  local end=$((SECONDS + $1)); shift
  until [ -n "$("$@" 2>/dev/null)" ]; do
    [ "$SECONDS" -lt "$end" ] || { echo "this did not happen in time: $*" >&2; tail -n 5 "$RUN/licorne.log" >&2; exit 1; }
    sleep 0.3
  done
}
running() { kubectl get pods -l "$1" --field-selector status.phase=Running -o name; }
enough() { [ "$(running "$1" | wc -l)" -ge "$2" ] && echo yes; }

say "A control plane of Kubernetes with $NODES nodes of 32 cores, which kwok plays"
"$here/up.sh"
show kubectl apply -f examples/kubernetes/queues.yaml

say 'licorne as the scheduler of pods that name yunikorn'
"$PYTHON" -m licorne.cli kube --rest "$REST" >"$RUN/licorne.log" 2>&1 &
licorne=$!
until_so 30 grep 'listening for REST' "$RUN/licorne.log"
cat "$RUN/licorne.log"

say 'A gang in the queue research: four pods that start together'
show kubectl apply -f examples/kubernetes/gang.yaml
until_so 30 enough applicationId=training 4
show kubectl get pods -o wide

say 'Builds in the queue batch, more than there is room for'
show kubectl apply -f examples/kubernetes/batch.yaml
until_so 60 enough applicationId=builds $((NODES * 2 - 4))
printf '%s builds run on %s nodes\n' "$(running applicationId=builds | wc -l)" "$NODES"

say 'Two more pods of research: it is guaranteed room for the first, and may not have more for the second'
show kubectl apply -f examples/kubernetes/urgent.yaml
until_so 30 enough applicationId=notebook 1
show kubectl get pods -l 'queue=root.research' -o wide

say 'What was told of a build that had to go'
evicted=(kubectl get events --field-selector 'reason=Preempted'
  -o 'custom-columns=POD:.involvedObject.name,REASON:.reason,MESSAGE:.message')
until_so 10 "${evicted[@]}" --no-headers
show "${evicted[@]}"

say 'Why report waits'
why() {
  curl -s "http://$REST/ws/v1/partition/default/application/$1" |
    "$PYTHON" -c 'import json, sys
for ask in json.load(sys.stdin)["requests"]:
    for entry in ask.get("allocationLog", ()):
        print(entry["message"])'
}
until_so 10 why report
why report
