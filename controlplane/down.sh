#!/bin/bash
# Stops what up.sh, kube-scheduler.sh and conformance/scheduler.sh started in $RUN, by process id; with WIPE=1 removes what they wrote.
here=$(cd "$(dirname "$0")" && pwd); RUN=${RUN:-$here/../build/controlplane/run}
for n in licorne kube-scheduler kwok kube-controller-manager kube-apiserver etcd; do
  [ -f "$RUN/$n.pid" ] || continue
  p=$(cat "$RUN/$n.pid"); kill "$p" 2>/dev/null
  for _ in $(seq 100); do grep -qs '^State:.[^Z]' /proc/$p/status || break; sleep 0.1; done
  grep -qs '^State:.[^Z]' /proc/$p/status && kill -9 "$p"; rm -f "$RUN/$n.pid"
done
[ "${WIPE:-0}" = 1 ] && rm -rf "$RUN"
exit 0
