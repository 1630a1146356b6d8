#!/bin/bash
# Runs the comparisons with TensorFlow, Keras, TensorBoard, safetensors, scikit-learn, ONNX Runtime and PyTorch: by hand.
set -euo pipefail

usage() {
  cat << 'USAGE'
usage: tests/interop/run.sh [--venv DIR] [--torch PYTHON]
  makes a Python environment with tensorflow, tensorboard, safetensors, scikit-learn and onnxruntime from PyPI in
  DIR (default build/interop-venv; about 2 GB and 3 minutes, once), and runs the tests of
  tests/interop that need them with the release build's programs: about a minute
  PYTHON has PyTorch and numpy (default: /usr/bin/python3 where python3-torch is installed, else DIR's,
  which then gets PyTorch from PyPI: 5 GB more)
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
venv=build/interop-venv
torch_python=
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --venv=*) venv=${1#*=}; shift ;;
    --venv) venv=${2:?--venv: expected a directory}; shift 2 ;;
    --torch=*) torch_python=${1#*=}; shift ;;
    --torch) torch_python=${2:?--torch: expected a Python interpreter}; shift 2 ;;
    *) echo "run.sh: unknown argument: $1" >&2; usage >&2; exit 2 ;;
  esac
done

if ! "$venv/bin/python" -c 'import tensorflow, tensorboard, safetensors, sklearn, onnx, onnxruntime' 2> /dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet tensorflow-cpu tensorboard safetensors scikit-learn onnx onnxruntime
fi
has_torch() {
  "$1" -c 'import torch, numpy' 2> /dev/null
}
if [[ -n $torch_python ]]; then
  if ! has_torch "$torch_python"; then
    echo "run.sh: --torch: expected an interpreter with PyTorch and numpy, found $torch_python" >&2
    exit 2
  fi
elif has_torch /usr/bin/python3; then
  torch_python=/usr/bin/python3
else
  torch_python=$venv/bin/python
  has_torch "$torch_python" || "$venv/bin/pip" install --quiet torch
fi
binaries=${KEELSON_BINARY_DIR:-build/release/bin}
if [[ ! -x $binaries/keelson_ckpt ]]; then
  echo "run.sh: $binaries/keelson_ckpt: no such program; ninja -C build/release builds it" >&2
  exit 2
fi
"$venv/bin/python" -c 'import tensorflow, keras; print("TensorFlow", tensorflow.__version__, "Keras", keras.__version__)' 2> /dev/null
failed=0
for test in tensorflow_test.py tensorboard_http_test.py tensorboard_thinning_test.py safetensors_test.py scikit_learn_test.py onnx_test.py csv_to_onnx_test.py; do
  TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -W ignore::DeprecationWarning -m unittest discover -s tests/interop -p "$test" || failed=1
done
"$torch_python" -m unittest discover -s tests/interop -p layers_torch_test.py || failed=1
exit "$failed"
