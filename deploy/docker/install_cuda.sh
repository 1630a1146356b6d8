#!/bin/bash
# Installs what compiling with CUDA needs from NVIDIA's repository for Debian 12.
# usage: [CUDA_HOME=/usr/local/cuda] deploy/docker/install_cuda.sh
# Does nothing where CUDA_HOME has a compiler already, as in a build image of NVIDIA's.
set -euo pipefail

release=13-0
packages=(
  "cuda-nvcc-$release" "cuda-cudart-dev-$release" "libcublas-dev-$release"
  # Loaded when a worker has several GPUs.
  "libnccl2=*+cuda${release/-/.}" "libnccl-dev=*+cuda${release/-/.}"
)
keyring=https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb

cuda=${CUDA_HOME:-/usr/local/cuda}
if [[ -x $cuda/bin/nvcc ]]; then
  echo "install_cuda: $cuda is in the build image"
  exit 0
fi
if [[ $(dpkg --print-architecture) != amd64 ]]; then
  echo "install_cuda: expected amd64, found $(dpkg --print-architecture): use a BUILD_IMAGE that has CUDA" >&2
  exit 1
fi

# apt ARGUMENTS...
apt() {
  DEBIAN_FRONTEND=noninteractive apt-get "$@" -q -y -o Acquire::Retries=3
}

deb=$(mktemp --suffix=.deb)
trap 'rm -f "$deb"' EXIT
apt update
apt install --no-install-recommends ca-certificates curl
curl --fail --silent --show-error --location --retry 3 --output "$deb" "$keyring"
dpkg --install "$deb"
apt update
apt install --no-install-recommends "${packages[@]}"
