#!/bin/bash
# Compiles all that is compiled with CUDA and links the worker with it, in a build folder that has the rest already;
# fetches CUDA where none is installed, and compiles for one architecture then. The other programs stay as they are.
# usage: tests/cuda_build.sh [BUILD]   (default: build/release)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
toolkit=$PWD/build/cuda-toolkit

# logged NAME COMMAND...: its output is shown when it fails.
logged() {
  local log=$build-cuda-$1.log
  if ! "${@:2}" > "$log" 2>&1; then
    tail -n 50 "$log"
    echo "cuda_build: $1 failed after $SECONDS s" >&2
    exit 1
  fi
}

mkdir -p build
if [[ ! -f $build/build.ninja ]]; then
  logged configure cmake --preset release -B "$build"
fi
logged toolkit deploy/install_cuda.sh "$toolkit"
fetched=$SECONDS
logged configure cmake -S . -B "$build" -DKEELSON_CUDA_CHECK="$toolkit"
logged build ninja -C "$build" -j "$(nproc)" cuda_check
worker=$build/bin/cuda_worker
if [[ ! -x $worker ]]; then
  worker=$build/bin/worker  # has CUDA where it is installed
fi
logged worker grep -q libcublasLt "$worker"
echo "CUDA sources compiled and $worker linked in $SECONDS s, $fetched s of them for the toolkit"
