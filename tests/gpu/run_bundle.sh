#!/bin/bash
# Runs the GPU tests and gpu_bench of the bundle that this script lies in; see run.sh.
set -uo pipefail

usage() {
  cat << 'USAGE'
usage: run.sh [--seconds N] [--logs DIR]
  --seconds N  give up after so long (default: 570)
  --logs DIR   where outputs go (default: logs/ beside this script)
One line per part: ok, failed or skipped; then what gpu_bench measured, and a summary.
exit code: 0 all ok; 1 something failed; 77 no usable GPU: nothing was measured
USAGE
}

bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
limit=570
logs=$bundle/logs
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --seconds=* | --logs=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --seconds)
      if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then
        echo "run.sh: --seconds: expected a number of seconds, found \"${2:-}\"" >&2; exit 2
      fi
      limit=$2; shift 2 ;;
    --logs)
      if [[ -z ${2:-} ]]; then
        echo "run.sh: --logs needs a value" >&2; exit 2
      fi
      logs=$2; shift 2 ;;
    *) echo "run.sh: unknown argument: $1" >&2; usage >&2; exit 2 ;;
  esac
done
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
cd "$bundle" || exit 1

TEST_TMPDIR=$(mktemp -d) || exit 1
export TEST_TMPDIR
trap 'rm -rf "$TEST_TMPDIR"' EXIT
export KEELSON_BINARY_DIR=$bundle/bin KEELSON_SOURCE_DIR=$bundle KEELSON_MNIST_DIR=$bundle/data/mnist

emulated=no
if [[ -e emulated ]]; then
  emulated=yes
  export KEELSON_EMULATED_GPUS=${KEELSON_EMULATED_GPUS:-1}
fi
passed=0 failed=0 skipped=0
no_gpu=

# say RESULT PART [MORE]
say() {
  printf '%-8s %-30s %s\n' "$1" "$2" "${3:-}"
}

# Where the machine keeps a library: the loader's own places come first.
find_libraries() {
  local missing folder
  missing=$(ldd bin/gpu_bench | awk '/=> not found/ { print $1 }')
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda-*/lib64 \
    /usr/local/cuda/targets/x86_64-linux/lib \
    /usr/lib/python3*/site-packages/nvidia/*/lib /usr/local/lib/python3*/*-packages/nvidia/*/lib \
    /opt/*/lib/python3*/site-packages/nvidia/*/lib /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib; do
    if [[ -z $missing ]]; then
      return 0
    fi
    # A later folder may hold the rest.
    if [[ -e $folder/$(head -n 1 <<< "$missing") ]]; then
      export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
      missing=$(ldd bin/gpu_bench | awk '/=> not found/ { print $1 }')
    fi
  done
  if [[ -n $missing ]]; then
    no_gpu="no CUDA device: $(tr '\n' ' ' <<< "$missing" | sed 's/ $//') not found; set LD_LIBRARY_PATH"
    return 1
  fi
}

# part NAME SECONDS COMMAND...: runs it, in what is left of the time at most.
part() {
  local name=$1 seconds=$2 log begin=$SECONDS left=$((limit - SECONDS)) code=0
  shift 2
  log=$logs/${name// /_}.log
  if [[ -n $no_gpu ]]; then
    skip "$name" "$no_gpu"
    return
  fi
  if [[ $left -lt 1 ]]; then
    failed=$((failed + 1))
    say failed "$name" "no time left of $limit s"
    return
  fi
  timeout --kill-after=5 "$((left < seconds ? left : seconds))" "$@" > "$log" 2>&1 || code=$?
  if [[ $code -eq 0 ]]; then
    passed=$((passed + 1))
    say ok "$name" "$((SECONDS - begin)) s$(counts "$log")"
  elif [[ $code -eq 124 || $code -eq 137 ]]; then
    failed=$((failed + 1))
    say failed "$name" "stopped after $((SECONDS - begin)) s; $log"
  elif grep -q 'Device not supported' "$log"; then
    skip "$name" "the tool does not support this GPU's driver"
  else
    failed=$((failed + 1))
    say failed "$name" "exit code $code after $((SECONDS - begin)) s; $log"
    tail -n 20 "$log" | sed 's/^/         | /'
  fi
}

# skip NAME REASON
skip() {
  skipped=$((skipped + 1))
  say skipped "$1" "$2"
}

# ", 210 tests, 3 skipped" of a test program's log.
counts() {
  local ran skipped_tests
  ran=$(sed -n 's/^\[==========\] \([0-9]*\) tests\{0,1\} from .* ran\..*/\1/p' "$1")
  skipped_tests=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$1" | head -n 1)
  if [[ -n $ran ]]; then
    printf ', %s tests' "$ran"
  fi
  if [[ -n $skipped_tests ]]; then
    printf ', %s skipped' "$skipped_tests"
  fi
}

# Tools of CUDA's installation may not be in the PATH.
sanitizer() {
  local place
  for place in "$(command -v compute-sanitizer)" /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer; do
    if [[ -x $place ]]; then
      echo "$place"
      return
    fi
  done
}

# checked NAME TOOL FLAGS...: a short run of everything under compute-sanitizer.
checked() {
  local name=$1 tool=$2 program
  shift 2
  program=$(sanitizer)
  if [[ -n $no_gpu ]]; then
    skip "$name" "$no_gpu"
  elif [[ $emulated == yes ]]; then
    skip "$name" "the GPU is emulated"
  elif [[ -z $program ]]; then
    skip "$name" "compute-sanitizer not found"
  else
    part "$name" 90 "$program" --tool "$tool" --error-exitcode 9 --target-processes application-only \
      bin/gpu_bench --smoke "$@"
  fi
}

if find_libraries; then
  if gpu=$(bin/gpu_bench --probe 2>&1); then
    say gpu "${gpu##*gpu_bench }"
    if [[ $emulated == yes ]]; then
      say note "the GPU is emulated: figures say nothing"
    fi
  else
    no_gpu=$(grep -o 'no CUDA device.*' <<< "$gpu" | head -n 1)
    no_gpu=${no_gpu:-"no CUDA device: $(tail -n 1 <<< "$gpu")"}
  fi
fi

job_filter='*' bench_flags=()
if [[ $emulated == yes ]]; then
  job_filter='ShortGpuJobTest.*' bench_flags=(--smoke)
fi
part conformance 150 tests/cuda_device_test
part "layers against float64" 60 tests/model_reference_test
checked "memory check" memcheck
checked "race check" racecheck --parts=kernels
part "training jobs" 240 tests/gpu_job_test --gtest_filter="$job_filter"
part gpu_bench 240 bin/gpu_bench --markdown "${bench_flags[@]}"
if [[ -z $no_gpu ]]; then
  grep -h 'accuracy' "$logs/training_jobs.log"
  echo
  grep -v "^[IE] 20" "$logs/gpu_bench.log"
fi

echo "$passed ok, $failed failed, $skipped skipped; $SECONDS s; logs in $logs"
if [[ $failed -gt 0 ]]; then
  exit 1
fi
if [[ -n $no_gpu ]]; then
  echo "nothing was measured: $no_gpu"
  exit 77
fi
