#!/bin/bash
# Starts licorne or kube-scheduler as default-scheduler on the control plane in $RUN, and waits until it is ready. Its log is
# $OUT/scheduler.log, its process id in $RUN, so that controlplane/down.sh ends it. GATES: feature gates of kube-scheduler.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${RUN:?}" "${PORT:?}" "${OUT:?}"
BIN=$(realpath "${BIN:-$here/../build/controlplane/bin}")
export KUBECONFIG=$RUN/admin.kubeconfig
case $1 in
kube-scheduler)
  LOG=$OUT/scheduler.log SCHEDULER_ARGS=--feature-gates=$GATES "$here/../controlplane/kube-scheduler.sh"
  ready=https://127.0.0.1:$((PORT + 5))/readyz ;;
licorne)
  # What a cluster gets that uses licorne for everything; the ConfigMap is in the namespace where licorne looks here.
  sed 's/^  namespace: licorne$/  namespace: default/' "${QUEUES:-$here/../deploy/default-scheduler/configuration.yaml}" |
    "$BIN/kubectl" apply -f -
  setsid "${LICORNE:-$here/../.venv/bin/licorne}" kube --scheduler-name default-scheduler --spread-defaults system \
    --rest "127.0.0.1:$((PORT + 5))" >"$OUT/scheduler.log" 2>&1 </dev/null &
  echo $! >"$RUN/licorne.pid"; ready=http://127.0.0.1:$((PORT + 5))/readyz ;;
*) echo "which scheduler? kube-scheduler or licorne" >&2; exit 2 ;;
esac
for _ in $(seq 300); do
  ! curl -skf "$ready" >/dev/null || exit 0
  sleep 0.1
done
echo "$1 is not ready; see $OUT/scheduler.log" >&2
exit 1
