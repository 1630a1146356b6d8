// A regression problem whose best loss is known: no model's mean squared error is below the
// variance of the noise in the targets, and a small network comes close to it.
#ifndef KEELSON_CORE_DATA_GENERATED_REGRESSION_H_
#define KEELSON_CORE_DATA_GENERATED_REGRESSION_H_

#include <cstdint>
#include <memory>

#include "core/data/dataset.h"
#include "core/data/record_random.h"

namespace keelson {

// Features x_0 to x_9, uniform in [-1, 1), of which the last five say nothing, and the target
// y = 2 sin(pi x_0 x_1) + 4 (x_2 - 0.5)^2 + 2 x_3 + x_4 + noise.
// Source: after Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19,
// 1991.
inline constexpr int64_t kRegressionFeatures = 10;
// The noise is normal, of this deviation.
inline constexpr float kRegressionNoise = 0.5f;
// The expected mean squared error of the best model.
inline constexpr double kBestRegressionLoss = 0.25;

// Records [begin, end) of the stream. One feature [kRegressionFeatures] and one label.
std::unique_ptr<Dataset> NewGeneratedRegression(uint64_t seed, DataSplit split, int64_t begin,
                                                int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_REGRESSION_H_
