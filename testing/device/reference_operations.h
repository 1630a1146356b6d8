// A Device's operations as plain double-precision loops, with which its tests compare.
#ifndef KEELSON_TESTING_DEVICE_REFERENCE_OPERATIONS_H_
#define KEELSON_TESTING_DEVICE_REFERENCE_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/geometry.h"

namespace keelson::reference {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The gradient of f at x, by central differences of step 1e-5: of a smooth f whose values are about
// 1, right to about 1e-9.
Doubles FiniteDifferences(const std::function<double(const Doubles&)>& f, Doubles x);

Doubles MatMul(const MatMulArgs& args, const Floats& a, const Floats& b, const Floats& c);
Doubles ColumnSums(int64_t rows, int64_t cols, const Floats& dy);

// The arrays of SparseRows.
struct SparseMatrix {
  std::vector<int32_t> rows;
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> columns;
  Floats coefficients;
};
// `y` after the product.
Doubles MultiplySparse(const SparseMatrix& a, int64_t width, const Floats& x, float beta,
                       const Floats& y);

Doubles Conv2D(const ConvGeometry& geometry, const Floats& x, const Floats& filter);
Doubles Conv2DBackwardData(const ConvGeometry& geometry, const Floats& filter, const Floats& dy);
Doubles Conv2DBackwardFilter(const ConvGeometry& geometry, const Floats& x, const Floats& dy);

Doubles MaxPool(const PoolGeometry& geometry, const Floats& x);
Doubles MaxPoolBackward(const PoolGeometry& geometry, const Floats& x, const Floats& dy);
Doubles AvgPool(const PoolGeometry& geometry, const Floats& x);
Doubles AvgPoolBackward(const PoolGeometry& geometry, const Floats& dy);

Doubles GlobalAveragePool(int64_t positions, int64_t channels, const Doubles& x);
Doubles GlobalAveragePoolBackward(int64_t positions, int64_t channels, const Floats& dy);

Doubles Add(const Floats& a, const Floats& b);
Doubles Multiply(const Floats& a, const Floats& b);
// `to` after the copy.
Doubles CopyColumns(int64_t rows, int64_t columns, const Floats& from, int64_t from_columns,
                    int64_t from_begin, const Floats& to, int64_t to_columns, int64_t to_begin);

Doubles ScaleRows(int64_t columns, const Floats& factors, const Floats& x);
Doubles AddRowVector(double alpha, const Floats& v, const Floats& x);
// y.size() rows.
Doubles RowDots(int64_t columns, double alpha, const Floats& a, const Floats& b, double beta,
                const Floats& y);
Doubles AddScaledRows(int64_t columns, double alpha, const Floats& factors, const Floats& x,
                      double beta, const Floats& y);
Doubles PairwiseDots(const PairGeometry& geometry, const Floats& x);
Doubles PairwiseDotsBackward(const PairGeometry& geometry, const Floats& x, const Floats& dy);
Floats Transpose(const TransposeGeometry& geometry, const Floats& x);
Doubles InverseSquareRoot(double epsilon, const Floats& x);

double Activate(ActivationKind kind, double x);
// The derivative as a function of the input x, not of the output.
double ActivateDerivative(ActivationKind kind, double x);

double Gate(GateKind kind, double x);
double GateDerivative(GateKind kind, double x);

Doubles Dropout(float rate, uint64_t seed, uint64_t stream, const Floats& x);

Doubles Softmax(int64_t columns, const Doubles& x);
Doubles SoftmaxBackward(int64_t columns, const Doubles& y, const Floats& dy);

struct Loss {
  Doubles losses;
  Doubles dscores;
};
Loss SoftmaxCrossEntropy(int64_t classes, double weight, const Floats& scores,
                         const Floats& labels);
Loss SigmoidCrossEntropy(double weight, const Floats& scores, const Floats& labels);
Loss MeanSquaredError(double weight, const Floats& scores, const Floats& targets);
Loss HuberLoss(double delta, double weight, const Floats& scores, const Floats& targets);

// Statistics of one channel each; the variance unbiased, 0 of one row.
struct Statistics {
  Doubles mean;
  Doubles variance;
};
Statistics BatchStatistics(const BatchNormGeometry& geometry, const Floats& x);
// gamma and beta may be empty: 1 and 0.
Doubles BatchNorm(const BatchNormGeometry& geometry, const Floats& x, const Floats& gamma,
                  const Floats& beta);
Doubles BatchNormInference(const BatchNormGeometry& geometry, const Floats& x, const Floats& gamma,
                           const Floats& beta, const Floats& mean, const Floats& variance);
struct BatchNormGradients {
  Doubles dgamma;
  Doubles dbeta;
  Doubles dx;
};
BatchNormGradients BatchNormBackward(const BatchNormGeometry& geometry, const Floats& x,
                                     const Floats& gamma, const Floats& dy);

// Of each row; inverse_deviation is 1 / sqrt(biased variance + epsilon).
struct LayerStatistics {
  Doubles mean;
  Doubles inverse_deviation;
};
LayerStatistics StatisticsOfLayers(const LayerNormGeometry& geometry, const Doubles& x);
// gamma and beta may be empty: 1 and 0.
Doubles LayerNorm(const LayerNormGeometry& geometry, const Doubles& x, const Floats& gamma,
                  const Floats& beta);
struct LayerNormGradients {
  Doubles dgamma;
  Doubles dbeta;
  Doubles dx;
};
LayerNormGradients LayerNormBackward(const LayerNormGeometry& geometry, const Floats& x,
                                     const Floats& gamma, const Floats& dy);

}  // namespace keelson::reference

#endif  // KEELSON_TESTING_DEVICE_REFERENCE_OPERATIONS_H_
