#!/bin/bash
# Compares the launcher and the manifests with a real Kubernetes API server and real operators: by hand.
set -euo pipefail

readonly KUBERNETES=v1.31.3
# The versions of Kubernetes' libraries that belong to it.
readonly LIBRARIES=v0.31.3
# Also in jobs.py, for the launcher.
readonly TRAINING_OPERATOR=v1.9.3
readonly JOBSET=v0.10.1
readonly TRAINER=v2.1.0

usage() {
  cat << USAGE
usage: tests/cluster/run.sh [--build DIR] [--no-others] [--no-training] [--golden] [--keep]
  builds kube-apiserver $KUBERNETES, the training operator $TRAINING_OPERATOR, JobSet $JOBSET and Trainer $TRAINER from
  their Go modules, once; starts them with etcd in namespaces of this run's own; applies every manifest under
  deploy/ with strict field validation and the operators' webhooks; compares the pods, Services and TF_CONFIG
  that the operator makes with the launcher's answer; trains deploy/tfjob/mnist.yaml with Keelson's programs

  --build DIR    for the built programs and Go's cache: default build/cluster
  --no-others    without JobSet and Trainer, and their build
  --no-training  without the training, which needs the release build's programs (\$KEELSON_BINARY_DIR)
  --golden       writes what the operator made to tests/cluster/golden, which a test of tests/run.sh reads
  --keep         leaves the cluster running until Ctrl-C, and its folder of logs for good
needs root (for the namespaces), go, etcd (Debian: etcd-server), openssl, ip
USAGE
}

fail() {
  echo "run.sh: $1" >&2
  exit 2
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/cluster
others=yes
training=yes
keep=
flags=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --build=*) build=${1#*=}; shift ;;
    --build) build=${2:?--build: expected a folder}; shift 2 ;;
    --no-others) others=; shift ;;
    --no-training) training=; flags+=("$1"); shift ;;
    --golden) flags+=("$1"); shift ;;
    --keep) keep=yes; flags+=("$1"); shift ;;
    *) echo "run.sh: unknown argument: $1" >&2; usage >&2; exit 2 ;;
  esac
done

# Not the PATH's python3: the distribution's has the distribution's packages.
python=/usr/bin/python3
binaries=${KEELSON_BINARY_DIR:-build/release/bin}
check_tools() {
  local program
  local -A packages=([etcd]=etcd-server [ip]=iproute2 [openssl]=openssl)
  [[ $EUID -eq 0 ]] || fail "root is missing: the pods get network and mount namespaces"
  for program in go etcd openssl ip unshare nsenter chroot; do
    command -v "$program" > /dev/null || fail "$program is missing${packages[$program]:+: apt-get install ${packages[$program]}}"
  done
  "$python" -c 'import yaml' 2> /dev/null || fail "$python has no yaml: apt-get install python3-yaml"
  if [[ $training && ! -x $binaries/chief ]]; then
    fail "$binaries/chief: no such program; ninja -C build/release builds it, --no-training does without"
  fi
}

# module_folder MODULE@VERSION: downloads it.
module_folder() {
  local answer
  answer=$(go mod download -json "$1") || { echo "$answer" >&2; exit 2; }
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<< "$answer"
}

# build_program NAME MODULE@VERSION PACKAGE [LINKER_FLAGS]: only where it has not been built.
# Compiled without optimisation: it runs for minutes.
build_program() {
  local folder=$build/$1 source begun=$SECONDS
  if [[ -x $folder/$1 && $(cat "$folder/version") == "$2" ]]; then
    return
  fi
  echo "building $1 ($2)"
  source=$(module_folder "$2")
  mkdir -p "$folder"
  cp --no-preserve=mode "$source/go.mod" "$source/go.sum" "$folder/"
  # Kubernetes' own libraries lie beside it in its repository, and are modules of their own elsewhere.
  sed -i "s#=> ./staging/src/\(k8s.io/[^ ]*\)#=> \1 $LIBRARIES#" "$folder/go.mod"
  (cd "$source" && nice -n 15 go build -modfile="$folder/go.mod" -gcflags='all=-N -l -dwarf=false' \
    -ldflags="-s -w ${4:-}" -o "$folder/$1" "$3")
  echo "$2" > "$folder/version"
  echo "built $1 in $((SECONDS - begun)) s"
}

check_tools
mkdir -p "$build"
build=$(realpath "$build")
export GOFLAGS="-mod=mod -p=2" GOWORK=off GOCACHE=$build/go-cache GOGC=400
version=k8s.io/component-base/version
build_program kube-apiserver "k8s.io/kubernetes@$KUBERNETES" ./cmd/kube-apiserver \
  "-X $version.gitVersion=$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=31"
operator=github.com/kubeflow/training-operator@$TRAINING_OPERATOR
build_program training-operator "$operator" ./cmd/training-operator.v1
jobset=sigs.k8s.io/jobset@$JOBSET
trainer=github.com/kubeflow/trainer/v2@$TRAINER
flags+=("--training-operator=$(module_folder "$operator")")
if [[ $others ]]; then
  build_program jobset-controller "$jobset" .
  build_program trainer-controller "$trainer" ./cmd/trainer-controller-manager
  flags+=("--jobset=$(module_folder "$jobset")" "--trainer=$(module_folder "$trainer")")
fi

folder=$(mktemp -d)
pid=
clean() {
  # With it ends the first process of its namespace, and with that all others there.
  [[ -z $pid ]] || kill -KILL "$pid" 2> /dev/null || true
  if [[ $keep ]]; then
    echo "logs: $folder"
  else
    rm -rf "$folder"
  fi
}
trap clean EXIT
trap 'exit 130' INT TERM
unshare --mount --net --pid --fork --kill-child --mount-proc "$python" tests/cluster/cluster_run.py \
  --folder="$folder" --programs="$build" --keelson="$binaries" "${flags[@]}" &
pid=$!
status=0
wait "$pid" || status=$?
pid=
exit "$status"
