#include <cmath>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "testing/device/kernel_testing.h"

namespace keelson::cuda {
namespace {

using KernelBatchNormTest = KernelTest;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float kEpsilon = 1e-3f;

struct Moments {
  Doubles mean;
  Doubles variance;  // biased
};

Moments MomentsOf(const BatchNormGeometry& g, const Floats& x) {
  Moments moments{Doubles(g.channels, 0.0), Doubles(g.channels, 0.0)};
  const auto rows = static_cast<double>(g.rows);
  for (size_t i = 0; i < x.size(); ++i) moments.mean[i % g.channels] += x[i] / rows;
  for (size_t i = 0; i < x.size(); ++i) {
    const double deviation = x[i] - moments.mean[i % g.channels];
    moments.variance[i % g.channels] += deviation * deviation / rows;
  }
  return moments;
}

Doubles Unbiased(const BatchNormGeometry& g, Doubles variance) {
  const auto rows = static_cast<double>(g.rows);
  for (double& value : variance) value = g.rows == 1 ? 0 : value * rows / (rows - 1);
  return variance;
}

Doubles Normalized(const BatchNormGeometry& g, const Floats& x, const Moments& moments,
                   const Floats& gamma, const Floats& beta) {
  Doubles y;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % g.channels;
    const double scale = (gamma.empty() ? 1.0 : double{gamma[c]}) /
                         std::sqrt(moments.variance[c] + double{g.epsilon});
    y.push_back((x[i] - moments.mean[c]) * scale + (beta.empty() ? 0.0 : double{beta[c]}));
  }
  return y;
}

struct NormGradients {
  Doubles dgamma;
  Doubles dbeta;
  Doubles dx;
};

NormGradients GradientsOf(const BatchNormGeometry& g, const Floats& x, const Floats& gamma,
                          const Floats& dy) {
  const Moments moments = MomentsOf(g, x);
  const Doubles normalized = Normalized(g, x, moments, {}, {});
  NormGradients result{Doubles(g.channels, 0.0), Doubles(g.channels, 0.0), {}};
  for (size_t i = 0; i < x.size(); ++i) {
    result.dgamma[i % g.channels] += dy[i] * normalized[i];
    result.dbeta[i % g.channels] += dy[i];
  }
  const auto rows = static_cast<double>(g.rows);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % g.channels;
    const double scale = (gamma.empty() ? 1.0 : double{gamma[c]}) /
                         std::sqrt(moments.variance[c] + double{g.epsilon});
    result.dx.push_back(scale *
                        (dy[i] - result.dbeta[c] / rows - normalized[i] * result.dgamma[c] / rows));
  }
  return result;
}

std::vector<BatchNormGeometry> Geometries() {
  return {{1, 1, kEpsilon},   {1, 4, kEpsilon},    {2, 3, kEpsilon},   {65, 1, kEpsilon},
          {31, 5, kEpsilon},  {129, 32, kEpsilon}, {64, 33, kEpsilon}, {3, 1028, kEpsilon},
          {600, 8, kEpsilon}, {40000, 4, kEpsilon}};
}

struct Forward {
  Floats mean;
  Floats variance;
  Floats y;
};

Forward RunForward(const BatchNormGeometry& g, const Floats& in, const Floats& gamma,
                   const Floats& beta, size_t offset = 0) {
  GpuArray<float> x(in, offset), y(Poison(g.rows * g.channels), offset), a(gamma), b(beta),
      mean(Poison(g.channels)), variance(Poison(g.channels)), scratch(Poison(BatchNormScratch(g)));
  EXPECT_EQ(LaunchBatchNorm(nullptr, g, x.data(), gamma.empty() ? nullptr : a.data(),
                            beta.empty() ? nullptr : b.data(), scratch.data(), mean.data(),
                            variance.data(), y.data()),
            cudaSuccess);
  return {mean.Read(), variance.Read(), y.Read()};
}

TEST_F(KernelBatchNormTest, NormalizesByTheBatch) {
  for (const BatchNormGeometry& g : Geometries()) {
    const Floats x = RandomFloats(g.rows * g.channels, 1);
    const Floats gamma = RandomFloats(g.channels, 2), beta = RandomFloats(g.channels, 3);
    const Moments moments = MomentsOf(g, x);
    for (size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << g.rows << " rows, " << g.channels << " channels");
      const Forward forward = RunForward(g, x, gamma, beta, offset);
      ExpectClose(forward.mean, moments.mean, 1e-6);
      ExpectClose(forward.variance, Unbiased(g, moments.variance), 1e-6);
      ExpectClose(forward.y, Normalized(g, x, moments, gamma, beta));
    }
    ExpectClose(RunForward(g, x, {}, {}).y, Normalized(g, x, moments, {}, {}));
  }
}

// Where the mean is large beside the deviations, one pass of float32 would leave nothing of them.
TEST_F(KernelBatchNormTest, StatisticsAreStable) {
  const BatchNormGeometry g{10000, 4, kEpsilon};
  Floats x = RandomFloats(g.rows * g.channels, 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] += i % 4 == 0 ? 1000.0f : (i % 4 == 1 ? -3e4f : 0.0f);
  x[2] = 1e4f;  // alone
  const Moments moments = MomentsOf(g, x);
  const Forward forward = RunForward(g, x, {}, {});
  const Doubles variance = Unbiased(g, moments.variance);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(forward.mean[c], moments.mean[c], 1e-7 * std::abs(moments.mean[c]) + 1e-7) << c;
    EXPECT_NEAR(forward.variance[c], variance[c], 1e-5 * variance[c]) << c;
  }
}

TEST_F(KernelBatchNormTest, EqualRowsHaveNoVariance) {
  const BatchNormGeometry g{1000, 3, kEpsilon};
  const Forward forward = RunForward(g, Floats(3000, 12345.678f), {}, {});
  EXPECT_EQ(forward.mean, Floats(3, 12345.678f));
  EXPECT_EQ(forward.variance, Floats(3, 0.0f));
  EXPECT_EQ(forward.y, Floats(3000, 0.0f));
}

TEST_F(KernelBatchNormTest, KeepsNotANumberVisibleInItsChannelAlone) {
  for (int64_t rows : {1, 9, 700}) {
    const BatchNormGeometry g{rows, 2, kEpsilon};
    Floats x = RandomFloats(2 * rows, 5);
    x[0] = std::nanf("");
    const Forward forward = RunForward(g, x, {}, {});
    EXPECT_TRUE(std::isnan(forward.mean[0]));
    EXPECT_TRUE(std::isnan(forward.variance[0]));
    EXPECT_TRUE(std::isnan(forward.y[0]));
    EXPECT_FALSE(std::isnan(forward.variance[1]));
    EXPECT_FALSE(std::isnan(forward.y[1]));
  }
}

TEST_F(KernelBatchNormTest, GivesTheGradients) {
  for (const BatchNormGeometry& g : Geometries()) {
    SCOPED_TRACE(testing::Message() << g.rows << " rows, " << g.channels << " channels");
    const Floats in = RandomFloats(g.rows * g.channels, 6);
    const Floats gradient = RandomFloats(g.rows * g.channels, 7);
    const Floats scales = RandomFloats(g.channels, 8);
    const Forward forward = RunForward(g, in, scales, {});
    for (bool has_gamma : {false, true}) {
      const NormGradients expected = GradientsOf(g, in, has_gamma ? scales : Floats(), gradient);
      const size_t offset = has_gamma ? 1 : 0;
      GpuArray<float> x(in, offset), dy(gradient, offset), gamma(scales), mean(forward.mean),
          variance(forward.variance), dgamma(Poison(g.channels)), dbeta(Poison(g.channels)),
          dx(Poison(g.rows * g.channels), offset), scratch(Poison(BatchNormScratch(g)));
      const float* const gamma_or_null = has_gamma ? gamma.data() : nullptr;
      ASSERT_EQ(LaunchBatchNormBackward(nullptr, g, x.data(), gamma_or_null, mean.data(),
                                        variance.data(), dy.data(), scratch.data(), dgamma.data(),
                                        dbeta.data(), dx.data()),
                cudaSuccess);
      ExpectClose(dgamma.Read(), expected.dgamma);
      ExpectClose(dbeta.Read(), expected.dbeta);
      ExpectClose(dx.Read(), expected.dx, 1e-4);
      GpuArray<float> dx_alone(Poison(g.rows * g.channels), offset);
      ASSERT_EQ(
          LaunchBatchNormBackward(nullptr, g, x.data(), gamma_or_null, mean.data(), variance.data(),
                                  dy.data(), scratch.data(), nullptr, nullptr, dx_alone.data()),
          cudaSuccess);
      EXPECT_EQ(dx_alone.Read(), dx.Read());
      GpuArray<float> dbeta_alone(Poison(g.channels));
      ASSERT_EQ(
          LaunchBatchNormBackward(nullptr, g, x.data(), gamma_or_null, mean.data(), variance.data(),
                                  dy.data(), scratch.data(), nullptr, dbeta_alone.data(), nullptr),
          cudaSuccess);
      EXPECT_EQ(dbeta_alone.Read(), dbeta.Read());
    }
  }
}

TEST_F(KernelBatchNormTest, InfersFromGivenStatistics) {
  for (const BatchNormGeometry& g : Geometries()) {
    const Floats in = RandomFloats(g.rows * g.channels, 9);
    const Floats scales = RandomFloats(g.channels, 10), shifts = RandomFloats(g.channels, 11);
    Floats means = RandomFloats(g.channels, 12), variances = RandomFloats(g.channels, 13);
    for (float& value : variances) value = 0.1f + value * value;
    const Moments moments{Doubles(means.begin(), means.end()),
                          Doubles(variances.begin(), variances.end())};
    GpuArray<float> x(in), gamma(scales), beta(shifts), mean(means), variance(variances),
        y(Poison(g.rows * g.channels));
    ASSERT_EQ(LaunchBatchNormInference(nullptr, g, x.data(), gamma.data(), beta.data(), mean.data(),
                                       variance.data(), y.data()),
              cudaSuccess);
    ExpectClose(y.Read(), Normalized(g, in, moments, scales, shifts));
  }
}

TEST_F(KernelBatchNormTest, LaunchesNothingForNoRows) {
  const BatchNormGeometry g{0, 4, kEpsilon};
  EXPECT_EQ(
      LaunchBatchNorm(nullptr, g, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      cudaSuccess);
  EXPECT_EQ(LaunchBatchNormBackward(nullptr, g, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(
      LaunchBatchNormInference(nullptr, g, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
