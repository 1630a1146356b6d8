#!/bin/bash
# Installs what building with data.parquet needs, Arrow's libraries and headers for C++, from Python's package index:
# Debian has no package of them. CMake finds them in the default folder by itself.
# usage: deploy/install_parquet.sh [FOLDER]   (default: ${XDG_CACHE_HOME:-~/.cache}/keelson/parquet)
set -euo pipefail

# fail TEXT
fail() {
  echo "install_parquet: $1" >&2
  exit 1
}

requirements=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/parquet_requirements.txt
folder=${1:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/keelson/parquet}

if cmp -s "$requirements" "$folder/requirements.txt"; then
  exit 0
fi
if [[ -e $folder && ! -e $folder/requirements.txt ]]; then
  fail "$folder is there already and was not made by this script"
fi
if [[ $(uname -m) != x86_64 ]]; then
  fail "expected x86_64, found $(uname -m): install Arrow and Parquet for C++ by hand"
fi
if ! python3 -m pip --version > /dev/null 2>&1; then
  fail "python3 has no pip: apt-get install python3-pip"
fi

mkdir -p "$(dirname "$folder")" || fail "$folder cannot be made"
staging=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$staging"' EXIT
log=$staging/log
wheel=$staging/wheel
installed=$staging/installed

echo "installing Arrow's libraries into $folder (55 MB to fetch, 70 MB on disk)"
# TMPDIR: pip moves what it has unpacked, which is quick within a file system.
if ! TMPDIR=$staging python3 -m pip install --no-deps --require-hashes --only-binary :all: --no-compile --no-cache-dir \
  --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_28_x86_64 \
  --target "$wheel" --requirement "$requirements" > "$log" 2>&1; then
  if grep -qF 'connection broken' "$log"; then
    fail "pip cannot reach the package index: $(grep -m 1 -oE "[A-Za-z]+Error\(.*" "$log" || true)"
  fi
  fail "pip failed: $(grep -m 1 '^ERROR: ' "$log" || tail -n 1 "$log")"
fi

# Of the wheel the libraries, their headers, and the licences.
mkdir -p "$installed/lib"
mv "$wheel"/pyarrow/include "$installed"
mv "$wheel"/*.dist-info "$installed"
for library in libarrow libparquet; do
  mv "$wheel/pyarrow/$library".so.* "$installed/lib"
  for file in "$installed/lib/$library".so.*; do
    ln -s "${file##*/}" "$installed/lib/$library.so"
  done
done
cp "$requirements" "$installed"/requirements.txt
rm -rf "$folder"
mv "$installed" "$folder"
