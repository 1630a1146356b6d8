#!/bin/bash
# Builds a bundle with which Keelson is tested and measured on a machine that has a GPU and nothing else, and runs it.
set -euo pipefail

usage() {
  cat << 'USAGE'
usage: tests/gpu/run.sh [--build-only] [--emulated] [--build DIR] [--output DIR] [-- flags of the run]
       tests/gpu/run.sh --bundle DIR|FILE.tar.xz [-- flags of the run]
  without flags  builds the bundle and runs it here
  --build-only   only builds: build/gpu-bundle/keelson-gpu.tar.xz, to be unpacked on a GPU machine,
                 where its run.sh is started
  --bundle PATH  only runs a bundle that is here already
  --emulated     with the emulated GPU of core/device/cuda/emulation: tests this script, measures nothing
  --build DIR    a folder that is configured already, with KEELSON_STATIC, instead of build/gpu
  --output DIR   where the bundle goes (default: build/gpu-bundle)
  flags of the run: --seconds N, --logs DIR
A machine that runs it needs NVIDIA's driver, libcublasLt of CUDA 13, and a glibc that is not older
than this machine's. exit code: 0 all ok; 1 something failed; 2 usage; 77 no GPU
USAGE
}

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=
output=$repository/build/gpu-bundle
bundle=
emulated=no
build_only=no
run_flags=()
# The size of the compressed bundle.
most_bytes=$((32 << 20))

# fail CODE TEXT
fail() {
  echo "tests/gpu/run.sh: $2" >&2
  exit "$1"
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --) shift; run_flags=("$@"); break ;;
    --bundle=* | --build=* | --output=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --bundle | --build | --output)
      if [[ -z ${2:-} ]]; then
        usage >&2
        fail 2 "$1 needs a value"
      fi
      case "$1" in
        --bundle) bundle=$2 ;;
        --build) build=$2 ;;
        --output) output=$2 ;;
      esac
      shift 2 ;;
    --emulated) emulated=yes; shift ;;
    --build-only) build_only=yes; shift ;;
    *) usage >&2; fail 2 "unknown argument: $1" ;;
  esac
done

# program TARGET: its file in the build folder.
program() {
  local folder
  for folder in bin tests; do
    if [[ -f $build/$folder/$1 ]]; then
      echo "$build/$folder/$1"
      return
    fi
  done
  fail 1 "$1 was not built"
}

# The programs of a bundle: where each goes, and the target that makes it.
if [[ $emulated == yes ]]; then
  programs=(bin/ps_server=ps_server bin/chief=chief bin/evaluator=evaluator bin/worker=emulated_worker
    bin/gpu_bench=gpu_bench_emulated tests/cuda_device_test=cuda_emulated_device_test
    tests/model_reference_test=model_gpu_test tests/gpu_job_test=gpu_job_test)
else
  programs=(bin/ps_server=ps_server bin/chief=chief bin/evaluator=evaluator bin/worker=worker
    bin/gpu_bench=gpu_bench tests/cuda_device_test=cuda_device_test
    tests/model_reference_test=model_reference_cuda_test tests/gpu_job_test=gpu_job_test)
fi

build_programs() {
  if [[ -z $build ]]; then
    build=$repository/build/gpu
    if [[ ! -f $build/build.ninja ]]; then
      mkdir -p "$repository/build"
      echo "configuring build/gpu"
      env -C "$repository" cmake --preset gpu > "$repository/build/gpu-configure.log" ||
        fail 1 "cmake failed: build/gpu-configure.log"
    fi
  fi
  if [[ $emulated == no ]] && ! grep -q '^CMAKE_CUDA_COMPILER:.*nvcc' "$build/CMakeCache.txt"; then
    fail 1 "$build was configured without nvcc: no CUDA to be tested; --emulated needs none"
  fi
  echo "building (minutes, once)"
  ninja -C "$build" "${programs[@]#*=}" > "$build/bundle-build.log" || {
    tail -n 30 "$build/bundle-build.log" >&2
    fail 1 "the build failed: $build/bundle-build.log"
  }
}

# Libraries that every machine has, or that the GPU machine must have. The loader, for one, is no
# library of a bundle: it belongs to the glibc.
allowed='^(lib(c|m|dl|rt|pthread|cublas|cublasLt)\.so\.[0-9]+|ld-linux-x86-64\.so\.2)$'

# needed FILE: the names of the libraries that it asks for.
needed() {
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# Carries along what the distribution has as shared libraries only.
copy_libraries() {
  local file name path
  for file in "$1"/bin/* "$1"/tests/*; do
    while read -r name path; do
      if [[ ! $name =~ $allowed && ! -e $1/lib/$name ]]; then
        cp -L "$path" "$1/lib/$name"
      fi
    done < <(ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }')
  done
  strip --strip-unneeded "$1"/bin/* "$1"/tests/* "$1"/lib/*
}

# What must be linked in is; everything finds what it needs in the bundle or among the allowed ones.
check_libraries() {
  local file name
  for file in "$1"/lib/*; do
    if [[ ${file##*/} =~ ^lib(grpc|gpr|protobuf|absl|cudart|cares) ]]; then
      fail 1 "$file: expected it to be linked in; configure with KEELSON_STATIC"
    fi
  done
  for file in "$1"/bin/* "$1"/tests/*; do
    # An RPATH serves the libraries of the libraries too, a RUNPATH does not.
    # shellcheck disable=SC2016  # Literally.
    if ! readelf -d "$file" | grep -qF '(RPATH)              Library rpath: [$ORIGIN/../lib]'; then
      fail 1 "$file: expected the rpath \$ORIGIN/../lib; configure with KEELSON_STATIC"
    fi
  done
  for file in "$1"/bin/* "$1"/tests/* "$1"/lib/*; do
    while read -r name; do
      if [[ ! $name =~ $allowed && ! -e $1/lib/$name ]]; then
        fail 1 "$file needs $name, which is not in the bundle"
      fi
    done < <(needed "$file")
  done
}

newest_glibc() {
  readelf -V "$1"/bin/* "$1"/tests/* "$1"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1 | sed 's/GLIBC_//'
}

# mebibytes BYTES
mebibytes() {
  awk "BEGIN { printf \"%.1f MiB\", $1 / 1048576 }"
}

make_bundle() {
  local folder=$output/keelson-gpu entry size
  rm -rf "$folder" "$folder.tar.xz"
  mkdir -p "$folder"/{bin,tests,lib,configs,data/mnist}
  for entry in "${programs[@]}"; do
    cp "$(program "${entry#*=}")" "$folder/${entry%%=*}"
  done
  copy_libraries "$folder"
  check_libraries "$folder"
  cp "$repository"/configs/*.textproto "$folder/configs/"
  cp "$repository/tests/gpu/run_bundle.sh" "$folder/run.sh"
  if compgen -G "$repository/../shared/data/mnist/t10k-*" > /dev/null; then
    cp "$repository"/../shared/data/mnist/t10k-* "$folder/data/mnist/"
    chmod u+w "$folder"/data/mnist/*
  else
    rmdir "$folder/data/mnist" "$folder/data"
    echo "note: no ../shared/data/mnist: the jobs on real digits will be skipped"
  fi
  if [[ $emulated == yes ]]; then
    touch "$folder/emulated"
  fi
  # The programs have much in common: a window over all of them halves the bundle.
  tar -C "$output" --owner=0 --group=0 -cf - keelson-gpu |
    xz -T1 --lzma2=preset=4,dict=256MiB > "$folder.tar.xz"
  size=$(stat -c %s "$folder.tar.xz")
  echo "$folder.tar.xz: $(mebibytes "$size"), unpacked $(mebibytes "$(du -sb "$folder" | cut -f 1)");" \
    "needs glibc $(newest_glibc "$folder")"
  echo "carried along: $(cd "$folder/lib" && echo *)"
  if [[ $size -gt $most_bytes ]]; then
    fail 1 "the bundle has $size bytes, expected at most $most_bytes"
  fi
  bundle=$folder
}

if [[ -z $bundle ]]; then
  build_programs
  make_bundle
  if [[ $build_only == yes ]]; then
    exit 0
  fi
elif [[ $bundle == *.tar.xz ]]; then
  mkdir -p "$output"
  tar -C "$output" -xJf "$bundle" || fail 1 "$bundle cannot be unpacked"
  bundle=$output/keelson-gpu
fi
if [[ ! -x $bundle/run.sh ]]; then
  fail 2 "$bundle: expected a bundle, found no run.sh in it"
fi
exec "$bundle/run.sh" "${run_flags[@]}"
