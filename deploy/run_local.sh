#!/bin/bash
# Builds Keelson and trains on this machine: the processes of a TFJob manifest, one progress line, a summary.
set -euo pipefail

usage() {
  cat << 'USAGE'
usage: deploy/run_local.sh [flags] [-- flags for every role]
  --ps N              parameter servers (default: the manifest's, 2)
  --workers N         workers (default: the manifest's, 2)
  --data FILE         a CSV or TFRecord file: proposes a model of its columns, and trains that
  --label COLUMN      the column to predict, with --data (default: label, target, click, …, or the last)
  --separator C       what is between the columns of --data: one character, or tab (default: a comma, in FILE.tsv a tab)
  --data_dir DIR      IDX files to train on, or those of the config (default: generated records)
  --model_dir DIR     where snapshots and event files go (default: runs/JOB-TIME/model)
  --config FILE       a TrainConfig (default: the manifest's, configs/mnist_cnn.textproto)
  --training_steps N  steps to train in all (default: the config's)
  --device DEVICE     what workers compute on: cpu, cuda, cuda:0,1, auto (default: auto)
  --precision P       of their GPUs: float32, tf32, bfloat16 (default: float32)
  --manifest FILE     a TFJob manifest (default: deploy/tfjob/mnist.yaml)
  --dashboard_port P  of the evaluator's page; 0: any free one; none (default: 6006, or the next free one)
  --follow WHO        show these logs: chief, worker-1, a role, all
  -h, --help          this text
and all other flags of deploy/tfjob_local.py but --bin_dir; its --help explains them.
From a second terminal: deploy/tfjob_local.py status, scale worker=4, kill worker-1, stop, ...
Paths are relative to the current directory; those after -- to the repository.
USAGE
}

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
manifest=$repository/deploy/tfjob/mnist.yaml
launcher_flags=()
role_flags=()
data=
label=
separator=
config=no

while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --) shift; role_flags=("$@"); break ;;
    --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}"; continue ;;
    --loopback_aliases | --strict_emulation | --dry_run | --run_commands) launcher_flags+=("$1"); shift ;;
    --data | --label | --separator | --ps | --workers | --data_dir | --model_dir | --config | --training_steps | --device | --precision | --manifest | \
      --param | --job | --image | --pvc | --run_dir | --gpus | --operator_version | --max_restarts | --follow | --color | \
      --dashboard_port | --auth_token_file)
      if [[ $# -lt 2 ]]; then
        echo "run_local: $1 needs a value" >&2; usage >&2; exit 2
      fi
      case "$1" in
        --manifest) manifest=$2 ;;
        --data) data=$2 ;;
        --label) label=$2 ;;
        --separator) separator=$2 ;;
        --config | --data_dir) config=$1; launcher_flags+=("$1=$2") ;;
        *) launcher_flags+=("$1=$2") ;;
      esac
      shift 2 ;;
    *) echo "run_local: unknown flag: $1" >&2; usage >&2; exit 2 ;;
  esac
done

if [[ -n $data && $config != no ]]; then
  echo "run_local: --data: expected without $config, for it proposes the configuration, found both" >&2
  exit 2
fi
if [[ -n $label$separator && -z $data ]]; then
  if [[ -n $label ]]; then flag=--label; else flag=--separator; fi
  echo "run_local: $flag: expected together with --data, found without" >&2
  exit 2
fi
if [[ -n $data && ! -f $data ]]; then
  echo "run_local: --data: expected a file, found none at $data" >&2
  exit 2
fi

# quietly NAME COMMAND...: one line; the whole output only when it fails.
quietly() {
  local name=$1 log=$repository/build/release-$1.log
  shift
  if ! "$@" > "$log" 2>&1; then
    cat "$log" >&2
    echo "run_local: $name failed; this output is also in $log" >&2
    exit 1
  fi
}

build() {
  local build_dir=$repository/build/release
  mkdir -p "$repository/build"
  if [[ ! -f $build_dir/build.ninja ]]; then
    echo "configuring build/release"
    # --preset finds CMakePresets.json in the current directory.
    quietly configure env -C "$repository" cmake --preset release
    grep -h 'CUDA: nvcc not found' "$repository/build/release-configure.log" | sed 's/^-- //' || true
  fi
  if [[ ! -x $build_dir/bin/evaluator ]]; then
    echo "building ps_server, worker, chief, evaluator (minutes, once)"
  fi
  local programs=(ps_server worker chief evaluator)
  if [[ -n $data ]]; then
    programs+=(bin/keelson_data)
  fi
  quietly build ninja -C "$build_dir" "${programs[@]}"
}

# Writes the configuration of a model of the file's columns beside the runs, where it can be changed.
propose() {
  local file name proposal flags=()
  file=$(realpath "$data")
  name=$(basename "$file")
  if [[ -n $label ]]; then
    flags+=(--label "$label")
  fi
  if [[ -n $separator ]]; then
    flags+=(--separator "$separator")
  fi
  mkdir -p "$repository/runs"
  # A name of its own: an earlier proposal may have been changed, or be in use.
  proposal=$(mktemp --suffix=.textproto "$repository/runs/${name%%.*}-XXXXXX")
  chmod a+r "$proposal"
  "$repository/build/release/bin/keelson_data" inspect "$file" "${flags[@]}" > "$proposal" || {
    rm -f "$proposal"
    exit 2
  }
  echo "a wide and deep model of the columns of $name: $proposal"
  echo "(a proposal: change it, and train with --config $proposal)"
  launcher_flags+=("--config=$proposal" "--data_dir=$(dirname "$file")")
}

"$repository/deploy/install_deps.sh"
build
if [[ -n $data ]]; then
  propose
fi
exec /usr/bin/python3 "$repository/deploy/tfjob_local.py" "${launcher_flags[@]}" "$manifest" -- "${role_flags[@]}"
