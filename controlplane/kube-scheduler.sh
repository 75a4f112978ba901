#!/bin/bash
# Starts Kubernetes' own scheduler on the control plane of up.sh, to be compared with.
here=$(cd "$(dirname "$0")" && pwd); RUN=${RUN:-$here/../build/controlplane/run}; BIN=${BIN:-$here/../build/controlplane/bin}; PORT=${PORT:-16443}
RUN=$(cd "$RUN" && pwd); BIN=$(cd "$BIN" && pwd)
cat > "$RUN/sched.yaml" <<K
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $RUN/sched.kubeconfig, qps: ${QPS:-5000}, burst: ${BURST:-10000}}
K
cd "$RUN"; setsid "$BIN/kube-scheduler" --config="$RUN"/sched.yaml --secure-port=$((PORT+5)) --bind-address=127.0.0.1 \
  --authentication-kubeconfig="$RUN/admin.kubeconfig" --authorization-kubeconfig="$RUN/admin.kubeconfig" ${SCHEDULER_ARGS:-} >"${LOG:-log/kube-scheduler.log}" 2>&1 </dev/null &
echo $! > "$RUN"/kube-scheduler.pid
