#include "core/model/in_batch_softmax.h"

namespace keelson {

void InBatchSoftmax(Device* device, const QueriesAndItems& in, float weight, DeviceMemory* scores,
                    DeviceMemory* losses, const InBatchGradients& gradients) {
  const int64_t n = in.rows;
  const float alpha = 1 / in.temperature;
  device->MatMul({.m = n, .n = n, .k = in.dim, .transpose_b = true, .alpha = alpha}, *in.queries,
                 *in.items, {}, scores);
  if (in.log_probabilities != nullptr) {
    device->AddRowVector(n, n, -1, *in.log_probabilities, scores);
  }
  device->SoftmaxCrossEntropy(n, n, weight, *scores, *in.own_items, losses, gradients.scores);
  if (in.weights != nullptr) device->Multiply(n, *losses, *in.weights, losses);
  if (gradients.scores == nullptr) return;
  if (in.weights != nullptr) device->ScaleRows(n, n, *in.weights, gradients.scores);
  device->MatMul({.m = n, .n = in.dim, .k = n, .alpha = alpha}, *gradients.scores, *in.items, {},
                 gradients.queries);
  device->MatMul({.m = n, .n = in.dim, .k = n, .transpose_a = true, .alpha = alpha},
                 *gradients.scores, *in.queries, {}, gradients.items);
}

}  // namespace keelson
