#!/bin/bash
# Runs a cluster under random faults and checks at the end that nothing was lost.
set -uo pipefail

usage() {
  echo "usage: tests/soak.sh MINUTES [SEED]"
  echo "  MINUTES may have a fraction; SEED is drawn when it is not given. Wants build/release, or the"
  echo "  build folder that KEELSON_BUILD names."
}

if [[ $# -lt 1 || $# -gt 2 || ! $1 =~ ^[0-9]+(\.[0-9]+)?$ || ! ${2:-0} =~ ^[0-9]+$ ]]; then
  usage >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${KEELSON_BUILD:-build/release}
build=$(cd "$build" && pwd) || exit 1
seed=${2:-$RANDOM$RANDOM}
folder=$(mktemp -d) || exit 1
echo "soak: $1 minutes, seed $seed"
if TEST_TMPDIR=$folder KEELSON_BINARY_DIR=$build/bin KEELSON_SOAK_SEED=$seed \
  KEELSON_SOAK_SECONDS=$(awk "BEGIN { print int($1 * 60) }") "$build/tests/soak_test"; then
  rm -rf "$folder"
else
  echo "soak: failed; again with: tests/soak.sh $1 $seed; the logs are in $folder" >&2
  exit 1
fi
