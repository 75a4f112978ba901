#!/bin/bash
# Plays Kubernetes' own end-to-end specs of schedulers against one scheduler, on a control plane of one machine.
#
#     run.sh licorne OUT [FLAGS OF e2e-scheduling]             or kube-scheduler in place of licorne
#
# OUT gets outcomes.jsonl (a line for each spec as soon as it ends), e2e.log, scheduler.log. README.md lists the variables.
# Exit status: that of the suite.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scheduler=$1 out=$(realpath -m "$2"); shift 2
BIN=$(realpath "${BIN:-$here/../build/controlplane/bin}")
E2E=${E2E:-$here/../build/conformance/e2e-scheduling} PYTHON=${PYTHON:-$here/../.venv/bin/python}
export PORT=${PORT:-24143} RUN=${RUN:-$out/run} BIN PYTHON
mkdir -p "$out"; rm -f "$out/outcomes.jsonl"
"$PYTHON" "$here/stages.py" "$here/../controlplane/stages.yaml" "$out/stages.yaml"
gates=--feature-gates=GenericWorkload=true
trap 'WIPE=1 "$here/../controlplane/down.sh"' EXIT
# The address of the nodes must not be 127.0.0.1: two specs bind the same port on both.
STAGES=$out/stages.yaml NODES=${NODES:-3} KWOK_ARGS="--node-ip=192.0.2.10" KCM_ARGS=$gates "$here/../controlplane/up.sh"
export KUBECONFIG=$RUN/admin.kubeconfig
kubectl() { "$BIN/kubectl" "$@"; }
# Each node gets room for files, and one pod that stands for the three that some specs wait for, a minute each time. Its
# kubelet would write that it is scheduled; specs fail where a pod with a node does not say so.
until kubectl --namespace kube-system get serviceaccount default >/dev/null 2>&1; do sleep 0.5; done
for node in $(kubectl get nodes -o name); do
  kubectl patch "$node" --subresource=status --patch \
    '{"status":{"capacity":{"ephemeral-storage":"100Gi"},"allocatable":{"ephemeral-storage":"100Gi"}}}' >/dev/null
  pod=kube-proxy-fluentd-elasticsearch-node-problem-detector-${node#node/}
  printf '%s\n' 'apiVersion: v1' 'kind: Pod' "metadata: {name: $pod, namespace: kube-system}" \
    "spec: {nodeName: ${node#node/}, automountServiceAccountToken: false, containers: [{name: all, image: fake}]}" |
    kubectl apply -f - >/dev/null 2>&1
  kubectl patch pod --namespace kube-system "$pod" --subresource=status \
    --patch '{"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}' >/dev/null
done
OUT=$out GATES=${gates#*=} "$here/scheduler.sh" "$scheduler"
FOCUS=${FOCUS:-$("$PYTHON" "$here/compare.py" --focus "$here/cases.tsv" "$scheduler")}
OUTCOMES=$out/outcomes.jsonl "$E2E" --provider=skeleton --kubeconfig="$KUBECONFIG" --ginkgo.focus="$FOCUS" \
  --ginkgo.timeout=2h --ginkgo.seed=1 --ginkgo.no-color --ginkgo.v --dump-logs-on-failure=false "$@" >"$out/e2e.log" 2>&1
