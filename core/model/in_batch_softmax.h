// The softmax cross-entropy of queries over the items of their batch.
#ifndef KEELSON_CORE_MODEL_IN_BATCH_SOFTMAX_H_
#define KEELSON_CORE_MODEL_IN_BATCH_SOFTMAX_H_

#include <cstdint>

#include "core/device/device.h"

namespace keelson {

struct QueriesAndItems {
  int64_t rows = 0;
  int64_t dim = 0;
  float temperature = 1;
  // [rows, dim].
  const DeviceMemory* queries = nullptr;
  const DeviceMemory* items = nullptr;
  // [rows]; null: the logarithms are 0, and the weights 1.
  const DeviceMemory* log_probabilities = nullptr;
  const DeviceMemory* weights = nullptr;
  // [rows]: 0, 1, ..., each query's own item.
  const DeviceMemory* own_items = nullptr;
};

// Of the gradient; all are null where none is computed. No two are the same.
struct InBatchGradients {
  DeviceMemory* scores = nullptr;   // [rows, rows], for the computation
  DeviceMemory* queries = nullptr;  // [rows, dim]
  DeviceMemory* items = nullptr;    // [rows, dim]
};

// Enqueues the losses [rows] of the queries, each times its weight, and the gradients of `weight`
// times their sum. scores [rows, rows]: s[i][j] = queries[i] . items[j] / temperature -
// log_probabilities[j]; loss i is weights[i] * (log(sum over j of exp(s[i][j])) - s[i][i]). Items
// of weight 0 are among those of the other queries. Source: Yi et al., "Sampling-bias-corrected
// neural modeling for large corpus item recommendations", RecSys 2019, section 3.
void InBatchSoftmax(Device* device, const QueriesAndItems& in, float weight, DeviceMemory* scores,
                    DeviceMemory* losses, const InBatchGradients& gradients);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_IN_BATCH_SOFTMAX_H_
