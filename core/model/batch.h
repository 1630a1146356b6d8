// A batch of examples as the model takes it.
#ifndef KEELSON_CORE_MODEL_BATCH_H_
#define KEELSON_CORE_MODEL_BATCH_H_

#include "core/tensor/tensor.h"

namespace keelson {

struct Batch {
  Tensor features;  // [n, example shape]
  Tensor labels;    // [n]; class numbers or targets

  int64_t size() const { return labels.size(); }
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_BATCH_H_
