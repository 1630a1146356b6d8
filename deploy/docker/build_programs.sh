#!/bin/bash
# Builds, in the build stage of the Dockerfile, the programs that the images have.
# usage: deploy/docker/build_programs.sh cpu|cuda [JOBS]
set -euo pipefail

variant=$1
jobs=${2:-$(nproc)}
with_cuda=OFF
if [[ $variant == cuda ]]; then
  with_cuda=AUTO
fi

cmake --preset release -DKEELSON_WITH_CUDA="$with_cuda"
if [[ $variant == cuda ]] && ! grep -q '^CMAKE_CUDA_COMPILER:.*nvcc' build/release/CMakeCache.txt; then
  echo "build_programs: VARIANT=cuda: expected nvcc and cuBLAS, found no CUDA that CMake can use" >&2
  exit 1
fi
ninja -C build/release -j "$jobs" ps_server worker chief evaluator keelson_ckpt keelson_ctl bin/keelson_data keelson_predict \
  bin/keelson_agent
