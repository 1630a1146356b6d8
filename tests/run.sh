#!/bin/bash
# Installs what is missing, builds, and runs tests; goes on after a failure, so that all of them show.
set -uo pipefail

usage() {
  cat << 'USAGE'
usage: tests/run.sh [--all] [--preset release|asan|tsan|fuzz]... [--label LABEL] [--minutes N]
  without flags: format, layers and includes; every test of the release build; the Python tests; a
  soak of one minute and a search of 2,000 schedules; the dashboard in a browser (screenshots:
  build/dashboard)
  --all       also what only a change can break that a release build does not show: the unit and
              integration tests under the address, undefined-behaviour and thread sanitizers, each
              fuzzer for five seconds, the CUDA sources by nvcc
  --preset P  only the tests of this build (may be repeated); fuzz: only the fuzzers
  --label L   only the C++ tests with this label: unit, integration, e2e, convergence, gpu
  --minutes N what has not begun when so many minutes are over is skipped, counted so, and named at the
              end: a slow machine checks less of what a sanitizer sees, and its run still ends
Before its end it lists how long each part took, the slowest tests, and the C++ tests that failed
with what they expected. The last line is "N passed, N failed[, N skipped]"; the exit code is 1 when
anything failed.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# What tests leave behind: testing::TempDir() is here.
TEST_TMPDIR=$(mktemp -d) || exit 1
export TEST_TMPDIR
# The process that builds other presets beside the tests of the first one; empty: there is none.
ahead=
trap '[[ -z $ahead ]] || kill -- "-$ahead" 2> /dev/null; rm -rf "$TEST_TMPDIR"' EXIT
# Not the PATH's python3: the distribution's has the distribution's packages.
python=/usr/bin/python3
presets=()
label=
all=
minutes=
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --all) all=yes; shift ;;
    --preset=* | --label=* | --minutes=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --preset)
      case "${2:-}" in
        release | asan | tsan | fuzz) presets+=("$2") ;;
        *) echo "run.sh: --preset ${2:-}: expected release, asan, tsan or fuzz" >&2; exit 2 ;;
      esac
      shift 2 ;;
    --label)
      case "${2:-}" in
        unit | integration | e2e | convergence | gpu) label=$2 ;;
        *) echo "run.sh: --label ${2:-}: expected unit, integration, e2e, convergence or gpu" >&2; exit 2 ;;
      esac
      shift 2 ;;
    --minutes)
      if [[ ! ${2:-} =~ ^[1-9][0-9]{0,3}$ ]]; then
        echo "run.sh: --minutes ${2:-}: expected a whole number from 1 to 9999" >&2
        exit 2
      fi
      minutes=$2
      shift 2 ;;
    *) echo "run.sh: unknown argument: $1" >&2; usage >&2; exit 2 ;;
  esac
done

if [[ -n $all && (${#presets[@]} -gt 0 || -n $label) ]]; then
  echo "run.sh: --all: expected neither --preset nor --label beside it" >&2
  exit 2
fi

passed=0 failed=0 skipped=0
failures=()
# What there was no time for.
omissions=()
# What ran, and when it began.
parts=()
begins=()

# count PASSED FAILED SKIPPED
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

headline() {
  parts+=("$1")
  begins+=("$SECONDS")
  printf '\n== %s (%s)\n' "$1" "$(clock "$SECONDS")"
}

# clock SECONDS: "12:34"
clock() {
  printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# part_times: how long each part took, those of some seconds at least.
part_times() {
  local i end
  for i in "${!parts[@]}"; do
    end=${begins[i + 1]:-$SECONDS}
    if [[ $((end - begins[i])) -ge 3 ]]; then
      printf '%7s  %s\n' "$(clock $((end - begins[i])))" "${parts[i]}"
    fi
  done
}

# is_late: no further part is to begin.
is_late() {
  [[ -n $minutes && $SECONDS -ge $((minutes * 60)) ]]
}

# omit NAME [COUNT]: there is no time for so many tests (1).
omit() {
  count 0 0 "${2:-1}"
  omissions+=("$1")
}

# check NAME COMMAND...: counts as one test.
check() {
  local name=$1
  shift
  if is_late; then
    omit "$name"
    return
  fi
  headline "$name"
  if "$@"; then
    count 1 0 0
  else
    count 0 1 0
    failures+=("$name")
  fi
}

# python_tests FOLDER
python_tests() {
  local name="Python tests of $1" report counts
  if is_late; then
    omit "$name"
    return
  fi
  headline "$name"
  report=$(mktemp)
  "$python" -m unittest discover -s "$1" -p '*_test.py' 2>&1 | tee "$report"
  counts=$("$python" tests/support/count_tests.py unittest "$report")
  rm -f "$report"
  add_counts "$name" "$counts"
}

# dashboard_tests: a browser on a real job; its screenshots are in build/dashboard.
dashboard_tests() {
  local name="dashboard in a browser" report passed_here failed_here skipped_here
  if is_late; then
    omit "$name"
    return
  fi
  headline "$name"
  report=$(mktemp)
  tests/dashboard/run.sh 2>&1 | tee "$report"
  read -r passed_here _ failed_here _ skipped_here _ <<< "$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$report" | tail -n 1)"
  rm -f "$report"
  # Without its closing line it did not get to its end.
  add_counts "$name" "${passed_here:-0} ${failed_here:-1} ${skipped_here:-0}"
}

# add_counts NAME "PASSED FAILED SKIPPED"
add_counts() {
  local -a numbers
  read -r -a numbers <<< "$2"
  if [[ ${#numbers[@]} -ne 3 ]]; then
    numbers=(0 1 0)
  fi
  count "${numbers[@]}"
  if [[ ${numbers[1]} -gt 0 ]]; then
    failures+=("$1: ${numbers[1]}")
  fi
}

# build PRESET TARGET...: 0 when everything was built; what can be built is built in any case.
build() {
  local log=build/$1-build.log settings=()
  mkdir -p build
  if [[ ${CI:-} == true ]]; then
    # Nobody takes these programs to a GPU.
    settings=(-DCMAKE_CUDA_ARCHITECTURES=80-real -DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
    # Nor looks for a line that a build by hand does not find: reports name functions.
    case "$1" in
      asan | tsan) settings+=("-DCMAKE_CXX_FLAGS=-O0 -g0") ;;
      fuzz) settings+=("-DCMAKE_CXX_FLAGS=-O1 -g0") ;;
    esac
  fi
  if ! cmake --preset "$1" "${settings[@]}" > "$log" 2>&1; then
    cat "$log"
    return 1
  fi
  if ! ninja -C "build/$1" -j "$(nproc)" -k 0 "${@:2}" >> "$log" 2>&1; then
    grep -E -A 12 'FAILED:|error:|ninja: ' "$log" | head -n 100
    return 1
  fi
}

# targets_of PRESET: none for all.
targets_of() {
  case "$1" in
    release) ;;
    fuzz) echo fuzzers ;;
    *) echo tests ;;
  esac
}

# build_ahead PRESET...: builds them one after the other while tests run, with what those leave of the cores: tests that
# start whole jobs wait for much of their time.
build_ahead() {
  local preset
  renice -n 19 -p "$BASHPID" > /dev/null
  for preset in "$@"; do
    # shellcheck disable=SC2046 # There may be no target.
    build "$preset" $(targets_of "$preset") > "$TEST_TMPDIR/build-of-$preset" 2>&1
    echo $? > "$TEST_TMPDIR/built-$preset"
  done
}

# await_build PRESET: waits while it is built beside the tests, and there is time.
await_build() {
  while [[ -n $ahead && ! -e $TEST_TMPDIR/built-$1 ]] && kill -0 "$ahead" 2> /dev/null && ! is_late; do
    sleep 1
  done
}

# finish_build PRESET: builds it, or says what came of the build beside the tests.
finish_build() {
  if [[ -z $ahead ]]; then
    # shellcheck disable=SC2046 # There may be no target.
    build "$1" $(targets_of "$1")
    return
  fi
  cat "$TEST_TMPDIR/build-of-$1"
  [[ $(cat "$TEST_TMPDIR/built-$1") -eq 0 ]]
}

# cpp_tests PRESET LABELS: LABELS is a regular expression, empty for all.
cpp_tests() {
  local preset=$1 labels=$2 results=$PWD/build/$1/results selection=() batch
  local -a batches
  await_build "$preset"
  check "build of $preset" finish_build "$preset"
  if [[ $preset == release && -n $all ]]; then
    set -m  # A process group of its own, by which the EXIT trap ends it.
    build_ahead "${presets[@]:1}" &
    ahead=$!
    set +m
  fi
  if is_late; then
    omit "tests of $preset"
    return
  fi
  if [[ ! -f build/$preset/CTestTestfile.cmake ]]; then
    return
  fi
  if [[ -n $labels ]]; then
    selection=(-L "$labels")
  fi
  headline "tests of $preset"
  rm -rf "$results"
  mkdir -p "$results"
  mapfile -t batches < <("$python" tests/support/test_batches.py "build/$preset" "$(batch_size "$preset")" "${selection[@]}")
  if [[ ${#batches[@]} -eq 0 ]]; then
    add_counts "list of the tests of $preset" "0 1 0"
  fi
  for batch in "${batches[@]}"; do
    ctest_batch "$preset" "$results" "$batch"
  done
}

# batch_size PRESET: how many programs run between two looks at the time; 0: all.
batch_size() {
  if [[ $1 == release || -z $minutes ]]; then
    echo 0
  else
    echo 13
  fi
}

# ctest_batch PRESET RESULTS BATCH: BATCH has the number of programs, and the regular expression of their names.
ctest_batch() {
  local preset=$1 results=$2 programs pattern junit
  read -r programs pattern <<< "$3"
  if is_late; then
    omit "$programs programs of $preset" "$programs"
    return
  fi
  junit=$(mktemp "$results/ctest.XXXXXX.junit")
  GTEST_OUTPUT="xml:$results/" ctest --test-dir "build/$preset" -j "$(nproc)" --output-on-failure \
    --test-output-truncation middle --output-junit "$junit" -R "$pattern" ||
    true  # The results say what failed.
  add_counts "tests of $preset" "$("$python" tests/support/count_tests.py ctest "$junit" "$results")"
}

# fuzz_tests: all fuzzers, from their corpora, as many side by side as there are cores; each counts as one test. An
# input that fails stays in build/fuzz. An allocation of 64 MiB is a failure too: inputs have 8 KiB.
fuzz_tests() {
  local name program folder=build/fuzz
  local -A pids=()
  await_build fuzz
  check "build of fuzz" finish_build fuzz
  if is_late; then
    omit "fuzzers"
    return
  fi
  local minutes=  # What begins is asked for its result.
  for program in "$folder"/tests/*_fuzz; do
    name=$(basename "$program" _fuzz)
    while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do
      wait -n  # The result is asked for below.
    done
    mkdir -p "$TEST_TMPDIR/$name"
    rm -f "$folder/$name-"*
    "$program" -max_total_time=5 -max_len=8192 -timeout=20 -malloc_limit_mb=64 \
      -artifact_prefix="$folder/$name-" "$TEST_TMPDIR/$name" "tests/fuzz/corpora/$name" > "$folder/$name.log" 2>&1 &
    pids[$name]=$!
  done
  for name in "${!pids[@]}"; do
    check "fuzz: $name" fuzz_result "${pids[$name]}" "$folder/$name.log"
  done
}

# fuzz_result PID LOG
fuzz_result() {
  if wait "$1"; then
    tail -n 1 "$2"
  else
    tail -n 50 "$2"
    return 1
  fi
}

# quick_benchmark: in bounded time, with a result for every scenario.
quick_benchmark() {
  timeout 120 build/release/bin/ps_bench --quick --json > "$TEST_TMPDIR/ps_bench.json" || return 1
  "$python" bench/check_results.py "$TEST_TMPDIR/ps_bench.json"
}

headline "packages"
if ! deploy/install_deps.sh --dev; then
  echo "0 passed, 1 failed"
  exit 1
fi

if [[ ${#presets[@]} -eq 0 && -z $label ]]; then
  check "format" tools/format --check
  check "layers" tools/check_layers
  check "includes" tools/check_includes
  python_tests tools
  python_tests tests/tfjob_api
  python_tests tests/cluster
  python_tests tests/docker
  python_tests tests/search
  python_tests tests/support
  python_tests tests/gpu
  python_tests tests/monitoring
  python_tests tests/distributions
  python_tests bench
fi
if [[ -n $all ]]; then
  presets=(release asan tsan fuzz)
elif [[ ${#presets[@]} -eq 0 && ($label == unit || $label == integration) ]]; then
  presets=(release asan tsan)
elif [[ ${#presets[@]} -eq 0 ]]; then
  presets=(release)
fi
for preset in "${presets[@]}"; do
  if [[ $preset == fuzz ]]; then
    fuzz_tests
  elif [[ -n $label ]]; then
    cpp_tests "$preset" "^$label\$"
  elif [[ $preset == release ]]; then
    cpp_tests release ""
    check "ps_bench --quick" quick_benchmark
    check "soak of a minute" tests/soak.sh 1
    # The same schedules each time, so that a failure is one of the change; others by hand.
    check "search of 2,000 schedules" tests/search.sh 60 1 "" 2000
    dashboard_tests
    # With the programs: their flags are compared with what manifests and launcher say.
    python_tests tests/interop
    python_tests tests/keelson_client
    python_tests tests/python
    python_tests tests/manifests
    python_tests tests/tfjob_local
    if [[ -n $all ]]; then
      check "CUDA sources" tests/cuda_build.sh
    fi
  else
    cpp_tests "$preset" '^(unit|integration)$'
  fi
done

headline "time of each part"
part_times
headline "the slowest tests"
results=()
for preset in "${presets[@]}"; do
  results+=("build/$preset/results")
done
"$python" tests/support/count_tests.py slowest 20 "${results[@]}"
headline "result"
"$python" tests/support/count_tests.py failed "${results[@]}"
for failure in "${failures[@]}"; do
  echo "failed: $failure"
done
for omission in "${omissions[@]}"; do
  echo "skipped, for lack of time: $omission"
done
summary="$passed passed, $failed failed"
if [[ $skipped -gt 0 ]]; then
  summary+=", $skipped skipped"
fi
echo "$summary"
[[ $failed -eq 0 ]]
