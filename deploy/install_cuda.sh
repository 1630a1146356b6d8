#!/bin/bash
# Installs what compiling with CUDA needs (nvcc, the runtime, cuBLAS, NCCL) from Python's package index, where there
# is no nvcc in the PATH, in CUDA_HOME or in /usr/local/cuda. CMake finds it in the default folder by itself.
# usage: deploy/install_cuda.sh [FOLDER]   (default: ${XDG_CACHE_HOME:-~/.cache}/keelson/cuda)
set -euo pipefail

# fail TEXT
fail() {
  echo "install_cuda: $1" >&2
  exit 1
}

requirements=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/cuda_requirements.txt
folder=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/keelson/cuda}

if cmp -s "$requirements" "$folder/requirements.txt"; then
  exit 0
fi
if nvcc=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin command -v nvcc); then
  echo "install_cuda: $nvcc is there already"
  exit 0
fi
if [[ -e $folder && ! -e $folder/requirements.txt ]]; then
  fail "$folder is there already and was not made by this script"
fi
if [[ $(uname -m) != x86_64 ]]; then
  fail "expected x86_64, found $(uname -m): install CUDA 13 by hand"
fi
if ! python3 -m pip --version > /dev/null 2>&1; then
  fail "python3 has no pip: apt-get install python3-pip"
fi

mkdir -p "$(dirname "$folder")" || fail "$folder cannot be made"
staging=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$staging"' EXIT
log=$staging/log
toolkit=$staging/nvidia/cu13

echo "installing CUDA into $folder (700 MB to fetch, 1.1 GB on disk)"
# TMPDIR: pip moves what it has unpacked, which is quick within a file system.
if ! TMPDIR=$staging python3 -m pip install --no-deps --require-hashes --only-binary :all: --no-compile --no-cache-dir \
  --target "$staging" --requirement "$requirements" > "$log" 2>&1; then
  if grep -qF 'connection broken' "$log"; then
    fail "pip cannot reach the package index: $(grep -m 1 -oE "[A-Za-z]+Error\(.*" "$log" || true)"
  fi
  fail "pip failed: $(grep -m 1 '^ERROR: ' "$log" || tail -n 1 "$log")"
fi

# The wheels' layout becomes that of an installed toolkit.
mv "$staging"/nvidia/nccl/include/* "$toolkit/include"
mv "$staging"/nvidia/nccl/lib/* "$toolkit/lib"
mv "$staging"/*.dist-info "$toolkit"  # with the licences
ln -s lib "$toolkit/lib64"
for library in "$toolkit"/lib/*.so.*; do
  ln -s "${library##*/}" "${library%.so.*}.so"
done
cp "$requirements" "$toolkit"/requirements.txt
rm -rf "$folder"
mv "$toolkit" "$folder"
