#!/bin/bash
# Installs what building and running Keelson needs on Debian 12 or 13, where it is missing.
# usage: deploy/install_deps.sh [--dev] [--cuda]
#   --dev: also what tests/run.sh needs; --cuda: also CUDA's compiler and libraries (install_cuda.sh says where)
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libabsl-dev
  libdnnl-dev libleveldb-dev libsnappy-dev libisal-dev libhwy-dev zlib1g-dev libzstd-dev nlohmann-json3-dev libcli11-dev libzip-dev
  libcpp-httplib-dev
  libgtest-dev libgmock-dev
  python3 python3-yaml
)
# For the dashboard's page. Only where they are missing or too old: Node of another origin excludes Debian's npm.
node_version=$(node --version 2> /dev/null || true)
node_major=${node_version#v}
node_major=${node_major%%.*}
if ! [[ $node_major =~ ^[0-9]+$ && $node_major -ge 18 ]]; then
  packages+=(nodejs)
fi
if ! command -v npm > /dev/null; then
  packages+=(npm)
fi
# clang, libclang-rt, libomp: the sanitizers and the fuzz targets; grpcio: the interoperability test; jsonschema: the
# manifests; chromium: the dashboard; the last line: hash tables, header files alone, that table_bench measures beside its own.
dev_packages=(clang clang-format libclang-rt-dev libomp-dev python3-grpcio python3-protobuf python3-jsonschema
  chromium mold
  libcuckoo-dev libsparsehash-dev robin-map-dev)
if ! command -v kubectl > /dev/null; then
  # Only then: other packages of the same program exclude Debian's.
  dev_packages+=(kubernetes-client)
fi

cuda=no
for flag in "$@"; do
  case "$flag" in
    --dev) packages+=("${dev_packages[@]}") ;;
    --cuda) cuda=yes ;;
    *) sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
  esac
done
if [[ $cuda == yes ]] && ! python3 -m pip --version > /dev/null 2>&1; then
  packages+=(python3-pip)
fi

install_cuda() {
  if [[ $cuda == yes ]]; then
    "$(dirname "${BASH_SOURCE[0]}")/install_cuda.sh"
  fi
}

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2> /dev/null || true)
missing=()
for package in "${packages[@]}"; do
  if ! grep -qxF "installed $package" <<< "$installed"; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  install_cuda
  exit 0
fi

# Others have other packages, or the same under other names. Tests set OS_RELEASE.
system=$({ . "${OS_RELEASE:-/etc/os-release}" && echo "$ID ${VERSION_ID:-without a version}"; } 2> /dev/null) ||
  system=unknown
case "$system" in
  "debian 12" | "debian 13") ;;
  *)
    echo "install_deps: expected Debian 12 or 13, found $system: install by hand what Debian has as ${missing[*]}" >&2
    exit 1 ;;
esac

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "install_deps: not root and no sudo; install as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

apt_log=$(mktemp)
trap 'rm -f "$apt_log"' EXIT

# apt ARGUMENTS...: quiet; on failure apt's own words and what was wanted.
apt() {
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get "$@" -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 > "$apt_log" 2>&1; then
    tail -n 20 "$apt_log" >&2
    echo "install_deps: apt-get $1 failed; missing: ${missing[*]}" >&2
    exit 1
  fi
}

echo "installing ${missing[*]}"
apt update
apt install --no-install-recommends "${missing[@]}"
install_cuda
