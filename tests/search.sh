#!/bin/bash
# Searches schedules of chief, servers, workers and evaluators, in a simulated world, for one that breaks a rule.
set -uo pipefail

usage() {
  echo "usage: tests/search.sh SECONDS [SEED [PROFILE [SCHEDULES]]]"
  echo "  SEED is the first one; it is drawn when it is not given. PROFILE: the seeds of these faults"
  echo "  alone (tests/search/profiles.h: any, points, ... hosts, hybrid, registers; empty: all), SCHEDULES of them at most:"
  echo "  \"tests/search.sh 3600 1 hosts 2000\". The last line has the numbers of"
  echo "  schedules and of violations, of which those of tests/search/open_violations.txt are counted"
  echo "  apart. Wants build/release, or the build folder that KEELSON_BUILD"
  echo "  names, whose tests/search --replay SEED shows one schedule with the roles' logs."
}

if [[ $# -lt 1 || $# -gt 4 || ! $1 =~ ^[0-9]+$ || ! ${2:-0} =~ ^[0-9]+$ || ! ${4:-1} =~ ^[0-9]+$ ]]; then
  usage >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${KEELSON_BUILD:-build/release}
seed=${2:-$RANDOM$RANDOM}
extent=()
if [[ -n ${3:-} ]]; then extent+=(--profile "$3"); fi
if [[ $# -ge 4 ]]; then extent+=(--schedules "$4"); fi
echo "search: $1 seconds from seed $seed"
exec "$build/tests/search" --open tests/search/open_violations.txt "${extent[@]}" "$1" "$seed"
