// One maker per kind of layer. The specs come from InferModelSpec; parameters outlive the layer.
#ifndef KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
#define KEELSON_CORE_MODEL_LAYERS_LAYERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/geometry.h"
#include "core/model/layers/layer.h"

namespace keelson {

// y = activation(x W + b)
std::unique_ptr<Layer> MakeDense(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                 std::optional<ActivationKind> activation);
// y = activation(x cross-correlated with W, + b)
std::unique_ptr<Layer> MakeConv2D(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                  std::optional<ActivationKind> activation);
std::unique_ptr<Layer> MakeMaxPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeAvgPool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeGlobalAveragePool(const LayerSpec& spec);
std::unique_ptr<Layer> MakeActivation(const LayerSpec& spec, ActivationKind kind);
std::unique_ptr<Layer> MakeGate(const LayerSpec& spec, GateKind kind);
std::unique_ptr<Layer> MakeSoftmax(const LayerSpec& spec);
// Drops in training only. `index` is the layer's position in the model.
std::unique_ptr<Layer> MakeDropout(const LayerSpec& spec, size_t index);

// y = x1 + x2 + ...
std::unique_ptr<Layer> MakeAdd(const LayerSpec& spec);
// y = x1 * x2, element by element; dx1 = dy * x2, dx2 = dy * x1.
std::unique_ptr<Layer> MakeMultiply(const LayerSpec& spec);
// The inputs' columns side by side, where the last axis has the columns.
std::unique_ptr<Layer> MakeConcat(const LayerSpec& spec);
// Some of the input's columns; the gradient of the others is 0.
std::unique_ptr<Layer> MakeSlice(const LayerSpec& spec);
// y = factor * x
std::unique_ptr<Layer> MakeScale(const LayerSpec& spec);

struct BatchNormParameters {
  Parameter gamma;  // null: 1
  Parameter beta;   // null: 0
  Parameter moving_mean;
  Parameter moving_variance;
};

// In training the statistics are the batch's, which Forward also leaves in the gradients of
// moving_mean and moving_variance: the samples of which the servers keep a moving average (the
// variance unbiased). In evaluation they are the moving ones.
std::unique_ptr<Layer> MakeBatchNorm(const LayerSpec& spec, const BatchNormParameters& parameters);

// gamma and beta may be null: 1 and 0. Keeps each row's mean and 1 / deviation.
std::unique_ptr<Layer> MakeLayerNorm(const LayerSpec& spec, Parameter gamma, Parameter beta);
std::vector<int64_t> KeptByLayerNorm(const LayerSpec& spec);

// y = C E with the batch's coefficients C (Pass::ids) and the embeddings E, which are a variable or
// rows of a table; dE = C^T dy, where most rows of a variable are 0. The coefficients are those of
// TensorFlow's embedding_lookup_sparse: 1 of an embedding; of a bag an id's weight w over what the
// combiner says, see CoefficientsOf.
std::unique_ptr<Layer> MakeEmbedding(const LayerSpec& spec, Parameter embeddings);

struct CrossParameters {
  Parameter down_kernel;  // null: the kernel is square
  Parameter kernel;
  Parameter bias;  // null: 0
};

// y = x0 * u + x with u = x W + b; of x0, x. With W = D K it computes t = x D and u = t K + b. It
// keeps u, and t. Backward, with du = dy * x0: dx0 = dy * u, dx = du W^T + dy, db = sums of du, dW
// = x^T du; or dK = t^T du, dt = du K^T, dD = x^T dt and dx = dt D^T + dy.
std::unique_ptr<Layer> MakeCross(const LayerSpec& spec, const CrossParameters& parameters);
std::vector<int64_t> KeptByCross(const LayerSpec& spec);

// y = a . b of each example; da = dy * b, db = dy * a.
std::unique_ptr<Layer> MakeDot(const LayerSpec& spec);

// y = (a . b) r s with r = 1 / sqrt(a . a + epsilon) and s = 1 / sqrt(b . b + epsilon), which it
// keeps. Backward: da = dy * (r s b - y r^2 a), db = dy * (r s a - y s^2 b).
std::unique_ptr<Layer> MakeCosine(const LayerSpec& spec);
std::vector<int64_t> KeptByCosine();

// y = (u . u - sum of v . v) / 2 with the inputs v and their sum u, which it keeps; dv = dy * (u -
// v). Its time is linear in the number of inputs. Source: Rendle, "Factorization machines", ICDM
// 2010, lemma 3.1.
std::unique_ptr<Layer> MakeFactorizationMachine(const LayerSpec& spec);
std::vector<int64_t> KeptByFactorizationMachine(const LayerSpec& spec);

// The inner products of all pairs of inputs, in the order of Device::PairwiseDots. Keeps the inputs
// side by side, and has room for their gradients, of which dv[i] is the sum of dy v[j] over the
// pairs with i.
std::unique_ptr<Layer> MakeDotInteraction(const LayerSpec& spec);
std::vector<int64_t> KeptByDotInteraction(const LayerSpec& spec);

// The gradient has its axes in the inverse order.
std::unique_ptr<Layer> MakeTranspose(const LayerSpec& spec);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_LAYERS_LAYERS_H_
