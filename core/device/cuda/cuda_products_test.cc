// What of matrix products and convolutions the conformance suite does not see: chunks, fallbacks
// and which epilogues are fused.
#include <cublasLt.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/device/cuda/cuda_convolution.h"
#include "core/device/cuda/cuda_matmul.h"
#include "testing/device/emulated_gpu_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson {
namespace {

using cuda_emulation::FailCall;

Floats Random(int64_t n, uint64_t seed) {
  Floats values(n);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 2.0f * UniformFloat(Philox(seed, 7, i)[0]) - 1.0f;
  }
  return values;
}

void ExpectNear(const Floats& actual, const reference::Doubles& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
  }
}

// The epilogue in plain loops.
reference::Doubles WithBias(reference::Doubles product, const Floats& bias) {
  for (size_t i = 0; i < product.size(); ++i) product[i] += bias[i % bias.size()];
  return product;
}

reference::Doubles WithEpilogue(reference::Doubles product, const Floats& bias,
                                ActivationKind activation) {
  product = WithBias(std::move(product), bias);
  for (double& value : product) value = reference::Activate(activation, value);
  return product;
}

class CudaProductsTest : public EmulatedGpuTest {};

TEST_F(CudaProductsTest, ActivationsAreKernelsWithTheirBias) {
  const MatMulArgs args{6, 5, 7};
  const Floats a = Random(42, 1), b = Random(35, 2), bias = Random(5, 3);
  for (ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid}) {
    Open();
    const Memory c = *device_->Allocate(30), bias_memory = Put(bias);
    const Memory a_memory = Put(a), b_memory = Put(b);
    const cuda_emulation::Statistics before = Now();
    device_->MatMul(args, *a_memory, *b_memory, {bias_memory.get(), kind}, c.get());
    EXPECT_EQ(Now().kernel_launches - before.kernel_launches, 1);
    EXPECT_EQ(Now().products - before.products, 1);
    ExpectNear(Get(*c), WithEpilogue(reference::MatMul(args, a, b, {}), bias, kind), 1e-5);
  }
}

// cublasLtMatmulAlgoGetHeuristic is asked for the fused form first.
TEST_F(CudaProductsTest, ABiasThatCublasDoesNotAddIsAKernel) {
  const MatMulArgs args{6, 5, 7};
  const Floats a = Random(42, 1), b = Random(35, 2), bias = Random(5, 3);
  for (int refusal :
       {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE}) {
    Open();
    const Memory c = *device_->Allocate(30), bias_memory = Put(bias);
    const Memory a_memory = Put(a), b_memory = Put(b);
    const bool fused = refusal == CUBLAS_STATUS_SUCCESS;
    if (!fused) FailCall("cublasLtMatmulAlgoGetHeuristic", 1, refusal);
    const cuda_emulation::Statistics before = Now();
    device_->MatMul(args, *a_memory, *b_memory, {bias_memory.get()}, c.get());
    EXPECT_EQ(Now().kernel_launches - before.kernel_launches, fused ? 0 : 1);
    EXPECT_EQ(Now().products - before.products, 1);
    ExpectNear(Get(*c), WithBias(reference::MatMul(args, a, b, {}), bias), 1e-5);
  }
}

TEST_F(CudaProductsTest, AProductThatCublasHasNotIsAnError) {
  Open();
  const Memory x = Put(Floats(4, 1)), y = Put(Floats(4, 1));
  FailCall("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_NOT_SUPPORTED);
  device_->MatMul({2, 2, 2}, *x, *x, {}, y.get());
  EXPECT_EQ(device_->status().message(),
            "device cuda:0: MatMul: cublasLtMatmulAlgoGetHeuristic: no algorithm for 2 x 2 x 2");
}

TEST_F(CudaProductsTest, GradientsOfADenseLayerWithAndWithoutFusion) {
  const int64_t rows = 33, inputs = 6, units = 5;
  const Floats x = Random(rows * inputs, 4), dy = Random(rows * units, 5);
  for (Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
    for (bool refused : {false, true}) {
      SCOPED_TRACE(absl::StrCat(PrecisionName(precision), " ", refused));
      Open(precision);
      const Memory x_memory = Put(x), dy_memory = Put(dy);
      const Memory kernel = *device_->Allocate(inputs * units), bias = *device_->Allocate(units);
      if (refused) FailCall("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_NOT_SUPPORTED);
      device_->DenseGradients(rows, inputs, units, *x_memory, *dy_memory, kernel.get(), bias.get());
      if (refused && precision != Precision::kFloat32) {
        EXPECT_FALSE(device_->Synchronize().ok());  // there is no other form of it
        continue;
      }
      const double tolerance = precision == Precision::kFloat32 ? 1e-5 : 5e-2;
      ExpectNear(Get(*kernel), reference::MatMul({inputs, units, rows, true}, x, dy, {}),
                 tolerance);
      // Not rounded in any precision.
      ExpectNear(Get(*bias), reference::ColumnSums(rows, units, dy), 1e-5);
    }
  }
}

TEST_F(CudaProductsTest, ChoosesAnAlgorithmOncePerShape) {
  Open();
  const Memory x = Put(Floats(400, 1)), y = Put(Floats(400, 1));
  device_->MatMul({10, 10, 10}, *x, *x, {}, y.get());
  // The next choice would fail.
  FailCall("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_INTERNAL_ERROR);
  for (int i = 0; i < 5; ++i) device_->MatMul({10, 10, 10}, *x, *x, {}, y.get());
  EXPECT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(cuda_emulation::PendingFaults(), 1);
  device_->MatMul({10, 10, 11}, *x, *x, {}, y.get());
  EXPECT_FALSE(device_->Synchronize().ok());
}

// The device's own pieces hold 128 MiB of columns; here they hold those of 1, 2 or 3 images of 7.
TEST_F(CudaProductsTest, ConvolvesABatchInPieces) {
  const ConvGeometry g{7, 6, 5, 3, 4, 3, 4, 3, 1, 0, 0};
  const Floats x = Random(g.in_size(), 1), filter = Random(g.filter_size(), 2);
  const Floats dy = Random(g.out_size(), 3), bias = Random(g.out_channels, 4);
  const int64_t image_bytes = 4 * 12 * 27;
  for (Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const double tolerance = precision == Precision::kFloat32 ? 1e-5 : 1e-1;
    for (int64_t column_bytes : {int64_t{1}, 2 * image_bytes + 5, 3 * image_bytes}) {
      SCOPED_TRACE(absl::StrCat(PrecisionName(precision), " ", column_bytes));
      Open();
      const auto context = *CudaContext::Create(0, precision);
      CudaProducts products(context.get());
      ASSERT_TRUE(context->Begin("Open"));
      ASSERT_TRUE(products.Open().ok());
      CudaConvolution convolution(context.get(), &products, column_bytes);
      const Memory x_memory = Put(x), filter_memory = Put(filter), dy_memory = Put(dy);
      const Memory bias_memory = Put(bias), y = Put(Floats(dy.size(), NAN));
      const Memory dx = Put(Floats(x.size(), NAN)), dfilter = Put(Floats(filter.size(), NAN));
      // The context's streams know nothing of the device's.
      ASSERT_TRUE(device_->Synchronize().ok());
      convolution.Forward(g, x_memory->data(), filter_memory->data(),
                          {bias_memory->data(), ActivationKind::kTanh}, y->data());
      convolution.BackwardData(g, filter_memory->data(), dy_memory->data(), dx->data());
      convolution.BackwardFilter(g, x_memory->data(), dy_memory->data(), dfilter->data());
      ASSERT_TRUE(context->SynchronizeStreams());
      ExpectNear(Get(*y),
                 WithEpilogue(reference::Conv2D(g, x, filter), bias, ActivationKind::kTanh),
                 tolerance);
      ExpectNear(Get(*dx), reference::Conv2DBackwardData(g, filter, dy), tolerance);
      ExpectNear(Get(*dfilter), reference::Conv2DBackwardFilter(g, x, dy), tolerance);
    }
  }
}

TEST_F(CudaProductsTest, APointwiseConvolutionNeedsNoColumns) {
  Open();
  const ConvGeometry g{5, 4, 3, 6, 4, 3, 2, 1};
  const Floats x = Random(g.in_size(), 1), filter = Random(g.filter_size(), 2);
  const Memory x_memory = Put(x), filter_memory = Put(filter), y = *device_->Allocate(g.out_size());
  const int64_t launches = Now().kernel_launches, allocations = Now().allocations;
  device_->Conv2D(g, *x_memory, *filter_memory, {}, y.get());
  device_->Conv2DBackwardData(g, *filter_memory, *y, x_memory.get());
  device_->Conv2DBackwardFilter(g, *x_memory, *y, filter_memory.get());
  EXPECT_EQ(Now().kernel_launches, launches);
  EXPECT_EQ(Now().allocations, allocations);
  ExpectNear(Get(*y), reference::Conv2D(g, x, filter), 1e-5);
}

}  // namespace
}  // namespace keelson
