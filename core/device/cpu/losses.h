// Losses on host arrays, as core/device/device.h describes them; `dscores` may be null.
#ifndef KEELSON_CORE_DEVICE_CPU_LOSSES_H_
#define KEELSON_CORE_DEVICE_CPU_LOSSES_H_

#include <cstdint>

namespace keelson {

void SoftmaxCrossEntropyLoss(int64_t rows, int64_t classes, float weight, const float* scores,
                             const float* labels, float* losses, float* dscores);
void SigmoidCrossEntropyLoss(int64_t rows, float weight, const float* scores, const float* labels,
                             float* losses, float* dscores);
void MeanSquaredErrorLoss(int64_t rows, float weight, const float* scores, const float* targets,
                          float* losses, float* dscores);
void HuberLosses(int64_t rows, float delta, float weight, const float* scores, const float* targets,
                 float* losses, float* dscores);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_LOSSES_H_
