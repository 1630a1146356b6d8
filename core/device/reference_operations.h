// A Device's operations in plain double-precision loops: what its tests compare with.
#ifndef KEELSON_CORE_DEVICE_REFERENCE_OPERATIONS_H_
#define KEELSON_CORE_DEVICE_REFERENCE_OPERATIONS_H_

#include <cstdint>
#include <vector>

#include "core/device/geometry.h"

namespace keelson::reference {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Doubles MatMul(const MatMulArgs& args, const Floats& a, const Floats& b, const Floats& c);
Doubles ColumnSums(int64_t rows, int64_t cols, const Floats& dy);

Doubles Conv2D(const ConvGeometry& geometry, const Floats& x, const Floats& filter);
Doubles Conv2DBackwardData(const ConvGeometry& geometry, const Floats& filter, const Floats& dy);
Doubles Conv2DBackwardFilter(const ConvGeometry& geometry, const Floats& x, const Floats& dy);

Doubles MaxPool(const PoolGeometry& geometry, const Floats& x);
Doubles MaxPoolBackward(const PoolGeometry& geometry, const Floats& x, const Floats& dy);
Doubles AvgPool(const PoolGeometry& geometry, const Floats& x);
Doubles AvgPoolBackward(const PoolGeometry& geometry, const Floats& dy);

double Activate(ActivationKind kind, double x);
// Of the activation at x, not of its output.
double ActivateDerivative(ActivationKind kind, double x);

Doubles Dropout(float rate, uint64_t seed, const Floats& x);

struct Loss {
  Doubles losses;
  Doubles dscores;
};
Loss SoftmaxCrossEntropy(int64_t classes, const Floats& scores, const Floats& labels);
Loss SigmoidCrossEntropy(const Floats& scores, const Floats& labels);
Loss MeanSquaredError(const Floats& scores, const Floats& targets);

}  // namespace keelson::reference

#endif  // KEELSON_CORE_DEVICE_REFERENCE_OPERATIONS_H_
