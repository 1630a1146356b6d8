#!/bin/bash
# Drives the dashboard of a real job with a browser. The last line is "N passed, N failed[, N skipped]": all is skipped
# where there is no browser, or no npm registry to have its driver from.
# usage: tests/dashboard/run.sh   (the programs: build/release, or the build folder that KEELSON_BUILD names;
#        screenshots: build/dashboard, or the folder that KEELSON_SCREENSHOTS names)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${KEELSON_BUILD:-build/release}

# skip WHY: ends the script.
skip() {
  echo "tests/dashboard: skipped: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

# fail WHY: ends the script.
fail() {
  echo "tests/dashboard: $1"
  echo "0 passed, 1 failed"
  exit 1
}

for program in node npm chromium; do
  command -v "$program" > /dev/null || skip "$program is missing; deploy/install_deps.sh --dev installs it"
done
for program in ps_server worker chief evaluator; do
  [[ -x $build/bin/$program ]] || fail "$build/bin/$program is missing; build it, or name the build folder in KEELSON_BUILD"
done

# Beside the build: npm leaves nothing in the source tree.
work=$build/dashboard_test
mkdir -p "$work"
cp tests/dashboard/package.json tests/dashboard/package-lock.json tests/dashboard/.npmrc tests/dashboard/*.mjs "$work/"
if ! npm ls --prefix "$work" --silent > /dev/null 2>&1 &&
  ! npm ci --prefix "$work" --prefer-offline --no-progress > "$work/npm.log" 2>&1; then
  tail -n 20 "$work/npm.log"
  if grep -qE 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED' "$work/npm.log"; then
    skip "npm's registry does not answer, and its cache does not have what tests/dashboard/package-lock.json names"
  fi
  fail "npm cannot install what tests/dashboard/package-lock.json names"
fi
exec node "$work/dashboard_test.mjs" --bin="$build/bin" --digits=../shared/data/mnist \
  --screenshots="${KEELSON_SCREENSHOTS:-build/dashboard}"
