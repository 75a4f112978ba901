#!/bin/bash
# Brings up a real Kubernetes control plane on the loopback interface: etcd, kube-apiserver, kube-controller-manager and
# kwok, which plays the kubelets. No scheduler. Everything it writes lies in $RUN. Settings are environment variables;
# README.md lists them. Afterwards: export KUBECONFIG=$RUN/admin.kubeconfig
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
BIN=${BIN:-$here/../build/controlplane/bin}
RUN=${RUN:-$here/../build/controlplane/run}
PORT=${PORT:-16443}            # API server; etcd takes PORT+1, PORT+2 (peers)
FSYNC=${FSYNC:-0}; LIFECYCLE=${LIFECYCLE:-0}; KCM=${KCM:-1}; KWOK=${KWOK:-1}; NODES=${NODES:-0}
ETCD=$((PORT+1)); PEER=$((PORT+2)); KCMPORT=$((PORT+3)); KWOKPORT=$((PORT+4))
PYTHON=${PYTHON:-$here/../.venv/bin/python}
[ "$NODES" = 0 ] || "$PYTHON" -c 'import aiohttp' || { echo "NODES=$NODES needs a Python with aiohttp; give it as PYTHON" >&2; exit 1; }
mkdir -p "$RUN/pki" "$RUN/log"; chmod 700 "$RUN"
RUN=$(cd "$RUN" && pwd); BIN=$(cd "$BIN" && pwd)
cd "$RUN"

if [ ! -f pki/ca.crt ]; then
  (cd pki
   openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=controlplane-ca \
     -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
     -keyout ca.key -out ca.crt
   openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout apiserver.key -out apiserver.csr
   printf 'subjectAltName=IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature,keyEncipherment\nbasicConstraints=CA:FALSE\nauthorityKeyIdentifier=keyid\n' > ext
   openssl x509 -req -in apiserver.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile ext -out apiserver.crt
   openssl genrsa -out sa.key 2048; openssl rsa -in sa.key -pubout -out sa.pub) >/dev/null 2>&1
  cat > tokens.csv <<T
admin-token,admin,1,"system:masters"
kcm-token,system:kube-controller-manager,2
sched-token,system:kube-scheduler,3
T
  chmod 600 tokens.csv
fi
for u in admin kcm sched; do cat > $u.kubeconfig <<K
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$PORT", certificate-authority: "$RUN/pki/ca.crt"}}]
users: [{name: u, user: {token: $u-token}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
K
done

start() { # name command...
  local n=$1; shift
  setsid "$@" >"log/$n.log" 2>&1 </dev/null &
  echo $! > "$n.pid"
}
waitfor() { # seconds command...
  local t=$(( $(date +%s) + $1 )); shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$t" ] || { echo "timed out: $*" >&2; tail -n 20 log/*.log >&2; exit 1; }
    sleep 0.2
  done
}
sync=(); [ "$FSYNC" = 1 ] || sync=(--unsafe-no-fsync)
start etcd "$BIN/etcd" --name=e --data-dir="$RUN/etcd" "${sync[@]}" \
  --listen-client-urls=http://127.0.0.1:$ETCD --advertise-client-urls=http://127.0.0.1:$ETCD \
  --listen-peer-urls=http://127.0.0.1:$PEER --initial-advertise-peer-urls=http://127.0.0.1:$PEER \
  --initial-cluster=e=http://127.0.0.1:$PEER --quota-backend-bytes=4294967296 \
  --auto-compaction-mode=periodic --auto-compaction-retention=5m --log-level=warn
# LIFECYCLE=0: no node-lifecycle controller and no heartbeats of kwok's nodes, so
# that 2,000 nodes cost nothing when idle. Then the admission plugin that taints
# a new node not-ready must go too: only that controller takes the taint away.
# LIFECYCLE=1: heartbeats (leases), taints, evictions, as on a real cluster.
adm=(); nolife=; LEASE=${LEASE:-40}
[ "$LIFECYCLE" = 1 ] || { adm=(--disable-admission-plugins=TaintNodesByCondition); nolife=,-node-lifecycle-controller; LEASE=0; }
start kube-apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:$ETCD \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --secure-port=$PORT \
  --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key --client-ca-file=pki/ca.crt \
  --token-auth-file=tokens.csv --authorization-mode=RBAC \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file=pki/sa.pub \
  --service-account-signing-key-file=pki/sa.key --service-cluster-ip-range=10.96.0.0/16 \
  --requestheader-client-ca-file=pki/ca.crt --requestheader-allowed-names=front-proxy \
  --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
  --requestheader-extra-headers-prefix=X-Remote-Extra- \
  --allow-privileged=true --profiling=false "${adm[@]}" \
  ${APISERVER_ARGS---feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1beta1=true}
api() { curl -sf --cacert pki/ca.crt -H 'Authorization: Bearer admin-token' "https://127.0.0.1:$PORT$1"; }
waitfor 60 api /readyz
if [ "$KCM" = 1 ]; then
  start kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig=kcm.kubeconfig \
    --bind-address=127.0.0.1 --secure-port=$KCMPORT --leader-elect=false --profiling=false \
    --use-service-account-credentials=true --service-account-private-key-file=pki/sa.key \
    --root-ca-file=pki/ca.crt --controllers="*,-node-ipam-controller$nolife" \
    --kube-api-qps=500 --kube-api-burst=1000 ${KCM_ARGS:-}
  waitfor 60 api /api/v1/namespaces/default/serviceaccounts/default
fi
if [ "$KWOK" = 1 ]; then
  start kwok "$BIN/kwok" --kubeconfig=admin.kubeconfig --config="${STAGES:-$here/stages.yaml}" --manage-all-nodes=true --cidr=10.0.0.0/8 \
    --node-ip=127.0.0.1 --node-lease-duration-seconds=$LEASE --server-address=127.0.0.1:$KWOKPORT -v=WARN ${KWOK_ARGS:-}
fi
if [ "$NODES" -gt 0 ]; then KUBECONFIG=$RUN/admin.kubeconfig RUN=$RUN PORT=$PORT "$PYTHON" "$here/nodes.py" "$NODES"; fi
echo "up: KUBECONFIG=$RUN/admin.kubeconfig"
