// The trained values of a model that becomes an ONNX file.
#ifndef KEELSON_CORE_ONNX_VALUES_H_
#define KEELSON_CORE_ONNX_VALUES_H_

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace keelson {

// The rows of a table, and what other ids have.
struct OnnxTable {
  std::vector<uint64_t> ids;  // distinct
  std::vector<float> rows;    // [ids, dim]
  std::vector<float> absent;  // [dim]
};

struct OnnxValues {
  std::vector<Tensor> variables;  // of ModelSpec::variables
  std::vector<OnnxTable> tables;  // of ModelSpec::tables
};

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_VALUES_H_
