#include "testing/device/reference_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/random.h"

namespace keelson::reference {
namespace {

// Calls visit(x, filter, y), three offsets, for every product of a convolution.
template <typename F>
void ForEachProduct(const ConvGeometry& g, F visit) {
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t oh = 0; oh < g.out_height; ++oh)
      for (int64_t ow = 0; ow < g.out_width; ++ow)
        for (int64_t kh = 0; kh < g.kernel; ++kh)
          for (int64_t kw = 0; kw < g.kernel; ++kw) {
            const int64_t ih = oh * g.stride - g.pad_top + kh;
            const int64_t iw = ow * g.stride - g.pad_left + kw;
            if (ih < 0 || ih >= g.in_height || iw < 0 || iw >= g.in_width) continue;
            for (int64_t ic = 0; ic < g.in_channels; ++ic)
              for (int64_t oc = 0; oc < g.out_channels; ++oc)
                visit(((n * g.in_height + ih) * g.in_width + iw) * g.in_channels + ic,
                      ((kh * g.kernel + kw) * g.in_channels + ic) * g.out_channels + oc,
                      ((n * g.out_height + oh) * g.out_width + ow) * g.out_channels + oc);
          }
}

// Calls visit(y, inputs) for every output of a pool, inputs in the order of the rows.
template <typename F>
void ForEachWindow(const PoolGeometry& g, F visit) {
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t oh = 0; oh < g.out_height; ++oh)
      for (int64_t ow = 0; ow < g.out_width; ++ow)
        for (int64_t c = 0; c < g.channels; ++c) {
          std::vector<size_t> inputs;
          for (int64_t kh = 0; kh < g.size; ++kh)
            for (int64_t kw = 0; kw < g.size; ++kw) {
              const int64_t ih = oh * g.stride - g.pad_top + kh;
              const int64_t iw = ow * g.stride - g.pad_left + kw;
              if (ih < 0 || ih >= g.in_height || iw < 0 || iw >= g.in_width) continue;
              inputs.push_back(((n * g.in_height + ih) * g.in_width + iw) * g.channels + c);
            }
          visit(((n * g.out_height + oh) * g.out_width + ow) * g.channels + c, inputs);
        }
}

Doubles Zeros(int64_t n) { return Doubles(n, 0.0); }

double Logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double ParameterOf(const Floats& parameters, int64_t channel, double otherwise) {
  return parameters.empty() ? otherwise : double{parameters[channel]};
}

// (x - mean) / sqrt(variance + epsilon), with biased variances.
Doubles Normalized(const BatchNormGeometry& g, const Floats& x, const Statistics& statistics) {
  Doubles normalized = Zeros(g.rows * g.channels);
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    const int64_t c = i % g.channels;
    normalized[i] =
        (x[i] - statistics.mean[c]) / std::sqrt(statistics.variance[c] + double{g.epsilon});
  }
  return normalized;
}

Statistics BiasedStatistics(const BatchNormGeometry& g, const Floats& x) {
  Statistics statistics = BatchStatistics(g, x);
  for (double& variance : statistics.variance) variance *= double(g.rows - 1) / double(g.rows);
  return statistics;
}

Doubles ScaledAndShifted(const BatchNormGeometry& g, Doubles normalized, const Floats& gamma,
                         const Floats& beta) {
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    const int64_t c = i % g.channels;
    normalized[i] = ParameterOf(gamma, c, 1) * normalized[i] + ParameterOf(beta, c, 0);
  }
  return normalized;
}

}  // namespace

Doubles FiniteDifferences(const std::function<double(const Doubles&)>& f, Doubles x) {
  constexpr double kStep = 1e-5;
  Doubles gradient;
  for (double& value : x) {
    const double middle = value;
    value = middle + kStep;
    const double above = f(x);
    value = middle - kStep;
    gradient.push_back((above - f(x)) / (2 * kStep));
    value = middle;
  }
  return gradient;
}

Doubles MatMul(const MatMulArgs& args, const Floats& a, const Floats& b, const Floats& c) {
  Doubles out = Zeros(args.m * args.n);
  for (int64_t i = 0; i < args.m; ++i)
    for (int64_t j = 0; j < args.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < args.k; ++p) {
        const double left = a[args.transpose_a ? p * args.m + i : i * args.k + p];
        sum += left * b[args.transpose_b ? j * args.k + p : p * args.n + j];
      }
      out[i * args.n + j] =
          args.alpha * sum + (args.beta == 0 ? 0.0 : args.beta * double{c[i * args.n + j]});
    }
  return out;
}

Doubles ColumnSums(int64_t rows, int64_t cols, const Floats& dy) {
  Doubles sums = Zeros(cols);
  for (int64_t i = 0; i < rows * cols; ++i) sums[i % cols] += dy[i];
  return sums;
}

Doubles MultiplySparse(const SparseMatrix& a, int64_t width, const Floats& x, float beta,
                       const Floats& y) {
  Doubles result(y.begin(), y.end());
  for (size_t k = 0; k < a.rows.size(); ++k) {
    for (int64_t j = 0; j < width; ++j) {
      double& to = result[a.rows[k] * width + j];
      double sum = beta == 0 ? 0 : double{beta} * to;
      for (int32_t i = a.offsets[k]; i < a.offsets[k + 1]; ++i) {
        sum += double{a.coefficients[i]} * x[a.columns[i] * width + j];
      }
      to = sum;
    }
  }
  return result;
}

Doubles Conv2D(const ConvGeometry& g, const Floats& x, const Floats& filter) {
  Doubles y = Zeros(g.out_size());
  ForEachProduct(g,
                 [&](int64_t in, int64_t f, int64_t out) { y[out] += double{x[in]} * filter[f]; });
  return y;
}

Doubles Conv2DBackwardData(const ConvGeometry& g, const Floats& filter, const Floats& dy) {
  Doubles dx = Zeros(g.in_size());
  ForEachProduct(
      g, [&](int64_t in, int64_t f, int64_t out) { dx[in] += double{dy[out]} * filter[f]; });
  return dx;
}

Doubles Conv2DBackwardFilter(const ConvGeometry& g, const Floats& x, const Floats& dy) {
  Doubles dfilter = Zeros(g.filter_size());
  ForEachProduct(
      g, [&](int64_t in, int64_t f, int64_t out) { dfilter[f] += double{dy[out]} * x[in]; });
  return dfilter;
}

Doubles MaxPool(const PoolGeometry& g, const Floats& x) {
  Doubles y = Zeros(g.out_size());
  ForEachWindow(g, [&](size_t out, const std::vector<size_t>& inputs) {
    y[out] = -std::numeric_limits<double>::infinity();
    for (size_t in : inputs) y[out] = std::max(y[out], double{x[in]});
  });
  return y;
}

Doubles MaxPoolBackward(const PoolGeometry& g, const Floats& x, const Floats& dy) {
  Doubles dx = Zeros(g.in_size());
  ForEachWindow(g, [&](size_t out, const std::vector<size_t>& inputs) {
    size_t best = inputs.front();
    for (size_t in : inputs) best = x[in] > x[best] ? in : best;
    dx[best] += dy[out];
  });
  return dx;
}

Doubles AvgPool(const PoolGeometry& g, const Floats& x) {
  Doubles y = Zeros(g.out_size());
  ForEachWindow(g, [&](size_t out, const std::vector<size_t>& inputs) {
    for (size_t in : inputs) y[out] += double{x[in]} / static_cast<double>(inputs.size());
  });
  return y;
}

Doubles AvgPoolBackward(const PoolGeometry& g, const Floats& dy) {
  Doubles dx = Zeros(g.in_size());
  ForEachWindow(g, [&](size_t out, const std::vector<size_t>& inputs) {
    for (size_t in : inputs) dx[in] += double{dy[out]} / static_cast<double>(inputs.size());
  });
  return dx;
}

Doubles GlobalAveragePool(int64_t positions, int64_t channels, const Doubles& x) {
  Doubles y(x.size() / positions, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    y[i / (positions * channels) * channels + i % channels] +=
        x[i] / static_cast<double>(positions);
  }
  return y;
}

Doubles GlobalAveragePoolBackward(int64_t positions, int64_t channels, const Floats& dy) {
  Doubles dx(dy.size() * positions);
  for (size_t i = 0; i < dx.size(); ++i) {
    dx[i] =
        dy[i / (positions * channels) * channels + i % channels] / static_cast<double>(positions);
  }
  return dx;
}

Doubles Add(const Floats& a, const Floats& b) {
  Doubles y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(double{a[i]} + b[i]);
  return y;
}

Doubles Multiply(const Floats& a, const Floats& b) {
  Doubles y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(double{a[i]} * b[i]);
  return y;
}

Doubles CopyColumns(int64_t rows, int64_t columns, const Floats& from, int64_t from_columns,
                    int64_t from_begin, const Floats& to, int64_t to_columns, int64_t to_begin) {
  Doubles copied(to.begin(), to.end());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; ++i) {
      copied[row * to_columns + to_begin + i] = from[row * from_columns + from_begin + i];
    }
  return copied;
}

Doubles ScaleRows(int64_t columns, const Floats& factors, const Floats& x) {
  Doubles y(x.begin(), x.end());
  for (size_t i = 0; i < y.size(); ++i) y[i] *= factors[i / static_cast<size_t>(columns)];
  return y;
}

Doubles AddRowVector(double alpha, const Floats& v, const Floats& x) {
  Doubles y(x.begin(), x.end());
  for (size_t i = 0; i < y.size(); ++i) y[i] += alpha * v[i % v.size()];
  return y;
}

Doubles RowDots(int64_t columns, double alpha, const Floats& a, const Floats& b, double beta,
                const Floats& y) {
  Doubles dots(y.size());
  for (size_t row = 0; row < y.size(); ++row) {
    if (beta != 0) dots[row] = beta * y[row];
    const size_t first = row * static_cast<size_t>(columns);
    for (size_t i = first; i < first + static_cast<size_t>(columns); ++i) {
      dots[row] += alpha * a[i] * b[i];
    }
  }
  return dots;
}

Doubles AddScaledRows(int64_t columns, double alpha, const Floats& factors, const Floats& x,
                      double beta, const Floats& y) {
  Doubles sums(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    sums[i] = alpha * factors[i / static_cast<size_t>(columns)] * x[i];
    if (beta != 0) sums[i] += beta * y[i];
  }
  return sums;
}

namespace {

// Calls visit(offset of the one vector in x, that of the other, pair in y) for all pairs.
template <typename Visit>
void ForEachPair(const PairGeometry& geometry, Visit visit) {
  size_t pair = 0;
  for (int64_t row = 0; row < geometry.rows; ++row) {
    for (int64_t i = 0; i < geometry.vectors; ++i) {
      for (int64_t j = i; j < geometry.vectors; ++j) {
        if (i == j && !geometry.diagonal) continue;
        const int64_t first = row * geometry.vectors;
        visit((first + i) * geometry.dim, (first + j) * geometry.dim, pair++);
      }
    }
  }
}

}  // namespace

Doubles PairwiseDots(const PairGeometry& geometry, const Floats& x) {
  Doubles y(geometry.rows * geometry.pairs());
  ForEachPair(geometry, [&](int64_t a, int64_t b, size_t pair) {
    for (int64_t k = 0; k < geometry.dim; ++k) y[pair] += double{x[a + k]} * x[b + k];
  });
  return y;
}

Doubles PairwiseDotsBackward(const PairGeometry& geometry, const Floats& x, const Floats& dy) {
  Doubles dx(x.size());
  ForEachPair(geometry, [&](int64_t a, int64_t b, size_t pair) {
    for (int64_t k = 0; k < geometry.dim; ++k) {
      dx[a + k] += double{dy[pair]} * x[b + k];
      dx[b + k] += double{dy[pair]} * x[a + k];
    }
  });
  return dx;
}

Floats Transpose(const TransposeGeometry& geometry, const Floats& x) {
  const int64_t* const extents = geometry.extents;
  Floats y;
  for (int64_t b = 0; b < geometry.batch; ++b) {
    int64_t at[3];  // on the input's axes
    int64_t& i = at[geometry.axes[0]];
    int64_t& j = at[geometry.axes[1]];
    int64_t& k = at[geometry.axes[2]];
    for (i = 0; i < extents[geometry.axes[0]]; ++i) {
      for (j = 0; j < extents[geometry.axes[1]]; ++j) {
        for (k = 0; k < extents[geometry.axes[2]]; ++k) {
          y.push_back(x[((b * extents[0] + at[0]) * extents[1] + at[1]) * extents[2] + at[2]]);
        }
      }
    }
  }
  return y;
}

Doubles InverseSquareRoot(double epsilon, const Floats& x) {
  Doubles y(x.begin(), x.end());
  for (double& element : y) element = 1 / std::sqrt(element + epsilon);
  return y;
}

double Activate(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kSigmoid:
      return Logistic(x);
  }
  return 0;
}

double ActivateDerivative(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return x > 0 ? 1.0 : 0.0;
    case ActivationKind::kTanh:
      return 1.0 / (std::cosh(x) * std::cosh(x));
    case ActivationKind::kSigmoid:
      return Logistic(x) * Logistic(-x);
  }
  return 0;
}

double Gate(GateKind kind, double x) {
  switch (kind) {
    case GateKind::kGelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    case GateKind::kSilu:
      return x / (1 + std::exp(-x));
  }
  return 0;
}

double GateDerivative(GateKind kind, double x) {
  switch (kind) {
    case GateKind::kGelu:
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case GateKind::kSilu:
      return Logistic(x) * (1 + x * Logistic(-x));
  }
  return 0;
}

Doubles Dropout(float rate, uint64_t seed, uint64_t stream, const Floats& x) {
  Doubles y(x.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    if (UniformFloat(Philox(seed, stream, i / 4)[i % 4]) >= rate) y[i] = x[i] / (1.0 - rate);
  }
  return y;
}

Doubles Softmax(int64_t columns, const Doubles& x) {
  Doubles y(x.size());
  for (size_t first = 0; first < x.size(); first += columns) {
    const double* row = x.data() + first;
    const double highest = *std::max_element(row, row + columns);
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(row[i] - highest);
    for (int64_t i = 0; i < columns; ++i) y[first + i] = std::exp(row[i] - highest) / sum;
  }
  return y;
}

Doubles SoftmaxBackward(int64_t columns, const Doubles& y, const Floats& dy) {
  Doubles dx(y.size());
  for (size_t first = 0; first < y.size(); first += columns) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += y[first + i] * dy[first + i];
    for (int64_t i = 0; i < columns; ++i) dx[first + i] = y[first + i] * (dy[first + i] - sum);
  }
  return dx;
}

Loss SoftmaxCrossEntropy(int64_t classes, double weight, const Floats& scores,
                         const Floats& labels) {
  Loss loss{Doubles(labels.size()), Doubles(scores.size())};
  for (size_t row = 0; row < labels.size(); ++row) {
    const float* s = scores.data() + row * classes;
    const double highest = *std::max_element(s, s + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(s[c] - highest);
    const auto label = static_cast<int64_t>(labels[row]);
    loss.losses[row] = std::log(sum) + highest - s[label];
    for (int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(s[c] - highest) / sum;
      loss.dscores[row * classes + c] = (probability - (c == label)) * weight;
    }
  }
  return loss;
}

Loss SigmoidCrossEntropy(double weight, const Floats& scores, const Floats& labels) {
  Loss loss{Doubles(labels.size()), Doubles(labels.size())};
  for (size_t i = 0; i < labels.size(); ++i) {
    const double s = scores[i];
    // -label log(sigmoid(s)) - (1 - label) log(sigmoid(-s)), with log(sigmoid(s)) = -softplus(-s).
    const auto softplus = [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); };
    loss.losses[i] = labels[i] * softplus(-s) + (1.0 - labels[i]) * softplus(s);
    loss.dscores[i] = (Logistic(s) - labels[i]) * weight;
  }
  return loss;
}

Loss MeanSquaredError(double weight, const Floats& scores, const Floats& targets) {
  Loss loss{Doubles(targets.size()), Doubles(targets.size())};
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = double{scores[i]} - targets[i];
    loss.losses[i] = error * error;
    loss.dscores[i] = 2.0 * error * weight;
  }
  return loss;
}

Loss HuberLoss(double delta, double weight, const Floats& scores, const Floats& targets) {
  Loss loss{Doubles(targets.size()), Doubles(targets.size())};
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = double{scores[i]} - targets[i], distance = std::abs(error);
    if (distance <= delta) {
      loss.losses[i] = error * error / 2;
      loss.dscores[i] = error * weight;
    } else {
      loss.losses[i] = delta * (distance - delta / 2);
      loss.dscores[i] = (error > 0 ? delta : -delta) * weight;
    }
  }
  return loss;
}

Statistics BatchStatistics(const BatchNormGeometry& g, const Floats& x) {
  Statistics statistics{Zeros(g.channels), Zeros(g.channels)};
  const auto rows = static_cast<double>(g.rows);
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    statistics.mean[i % g.channels] += x[i] / rows;
  }
  if (g.rows == 1) return statistics;
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    const double difference = x[i] - statistics.mean[i % g.channels];
    statistics.variance[i % g.channels] += difference * difference / (rows - 1);
  }
  return statistics;
}

Doubles BatchNorm(const BatchNormGeometry& g, const Floats& x, const Floats& gamma,
                  const Floats& beta) {
  return ScaledAndShifted(g, Normalized(g, x, BiasedStatistics(g, x)), gamma, beta);
}

Doubles BatchNormInference(const BatchNormGeometry& g, const Floats& x, const Floats& gamma,
                           const Floats& beta, const Floats& mean, const Floats& variance) {
  const Statistics statistics{Doubles(mean.begin(), mean.end()),
                              Doubles(variance.begin(), variance.end())};
  return ScaledAndShifted(g, Normalized(g, x, statistics), gamma, beta);
}

BatchNormGradients BatchNormBackward(const BatchNormGeometry& g, const Floats& x,
                                     const Floats& gamma, const Floats& dy) {
  const Statistics statistics = BiasedStatistics(g, x);
  const Doubles normalized = Normalized(g, x, statistics);
  BatchNormGradients out{Zeros(g.channels), Zeros(g.channels), Zeros(g.rows * g.channels)};
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    out.dgamma[i % g.channels] += dy[i] * normalized[i];
    out.dbeta[i % g.channels] += dy[i];
  }
  // Through the mean and the variance too: of the gradient of the normalized x, without its
  // projections on 1 and on the normalized x.
  for (int64_t i = 0; i < g.rows * g.channels; ++i) {
    const int64_t c = i % g.channels;
    const double deviation = std::sqrt(statistics.variance[c] + double{g.epsilon});
    out.dx[i] = ParameterOf(gamma, c, 1) / deviation *
                (dy[i] - (out.dbeta[c] + normalized[i] * out.dgamma[c]) / double(g.rows));
  }
  return out;
}

LayerStatistics StatisticsOfLayers(const LayerNormGeometry& g, const Doubles& x) {
  LayerStatistics statistics;
  const auto features = static_cast<double>(g.features);
  for (int64_t row = 0; row < g.rows; ++row) {
    const double* values = x.data() + row * g.features;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < g.features; ++i) mean += values[i] / features;
    for (int64_t i = 0; i < g.features; ++i) {
      variance += (values[i] - mean) * (values[i] - mean) / features;
    }
    statistics.mean.push_back(mean);
    statistics.inverse_deviation.push_back(1 / std::sqrt(variance + double{g.epsilon}));
  }
  return statistics;
}

Doubles LayerNorm(const LayerNormGeometry& g, const Doubles& x, const Floats& gamma,
                  const Floats& beta) {
  const LayerStatistics statistics = StatisticsOfLayers(g, x);
  Doubles y = Zeros(g.rows * g.features);
  for (int64_t i = 0; i < g.rows * g.features; ++i) {
    const int64_t row = i / g.features, feature = i % g.features;
    y[i] = ParameterOf(gamma, feature, 1) * (x[i] - statistics.mean[row]) *
               statistics.inverse_deviation[row] +
           ParameterOf(beta, feature, 0);
  }
  return y;
}

LayerNormGradients LayerNormBackward(const LayerNormGeometry& g, const Floats& x,
                                     const Floats& gamma, const Floats& dy) {
  const Doubles inputs(x.begin(), x.end());
  const LayerStatistics statistics = StatisticsOfLayers(g, inputs);
  const Doubles normalized = LayerNorm(g, inputs, {}, {});
  LayerNormGradients out{Zeros(g.features), Zeros(g.features), Zeros(g.rows * g.features)};
  for (int64_t row = 0; row < g.rows; ++row) {
    // The means of the normalized x's gradient, and of its product with the normalized x.
    double mean = 0, product = 0;
    for (int64_t i = 0; i < g.features; ++i) {
      const int64_t at = row * g.features + i;
      const double gradient = ParameterOf(gamma, i, 1) * dy[at];
      mean += gradient / static_cast<double>(g.features);
      product += gradient * normalized[at] / static_cast<double>(g.features);
      out.dgamma[i] += dy[at] * normalized[at];
      out.dbeta[i] += dy[at];
    }
    for (int64_t i = 0; i < g.features; ++i) {
      const int64_t at = row * g.features + i;
      out.dx[at] = statistics.inverse_deviation[row] *
                   (ParameterOf(gamma, i, 1) * dy[at] - mean - normalized[at] * product);
    }
  }
  return out;
}

}  // namespace keelson::reference
