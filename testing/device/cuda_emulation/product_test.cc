// Products by the emulated cuBLAS and cuBLASLt, and reductions by the emulated NCCL.
#include <cublasLt.h>
#include <nccl.h>

#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "core/base/random.h"
#include "testing/device/cuda_emulation/testing.h"

namespace keelson::cuda_emulation {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> Random(int64_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * UniformFloat(Philox(seed, 0, i)[0]) - 1;
  }
  return values;
}

// A product of column by column matrices without gaps, as the tests ask for it.
struct Request {
  int64_t m = 5, n = 3, k = 7;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  cudaDataType operands = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* vector = nullptr;
  int64_t extra_ld = 0;  // of d
};

class CublasLtTest : public EmulationTest {
 protected:
  void SetUp() override { ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS); }
  void TearDown() override {
    EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    EmulationTest::TearDown();
  }

  // Makes the descriptions, asks for an algorithm and multiplies with it.
  cublasStatus_t Multiply(const Request& request, const float* a, const float* b, float* d,
                          bool with_workspace = true) {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t layout_a, layout_b, layout_d;
    cublasLtMatmulPreference_t preference;
    const auto rows = [](bool transpose, int64_t rows, int64_t cols) {
      return static_cast<uint64_t>(transpose ? cols : rows);
    };
    const auto [m, n, k] = std::tuple(request.m, request.n, request.k);
    cublasLtMatmulDescCreate(&product, request.compute, CUDA_R_32F);
    const uint64_t rows_a = rows(request.transpose_a, m, k);
    cublasLtMatrixLayoutCreate(&layout_a, request.operands, rows_a, rows(request.transpose_a, k, m),
                               static_cast<int64_t>(rows_a));
    const uint64_t rows_b = rows(request.transpose_b, k, n);
    cublasLtMatrixLayoutCreate(&layout_b, request.operands, rows_b, rows(request.transpose_b, n, k),
                               static_cast<int64_t>(rows_b));
    cublasLtMatrixLayoutCreate(&layout_d, CUDA_R_32F, static_cast<uint64_t>(m),
                               static_cast<uint64_t>(n), m + request.extra_ld);
    cublasLtMatmulPreferenceCreate(&preference);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)),
                CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, request.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, request.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, request.epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, request.vector);
    GpuFloats workspace(4096);
    const uint64_t workspace_bytes = workspace.bytes();
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace_bytes, sizeof(workspace_bytes));
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, product, layout_a, layout_b, layout_d, layout_d, preference, 1, &found, &count);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatmul(handle_, product, &request.alpha, a, layout_a, b, layout_b,
                              &request.beta, d, layout_d, d, layout_d, &found.algo,
                              with_workspace ? workspace.data() : nullptr,
                              with_workspace ? workspace_bytes : 0, nullptr);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_d}) {
      cublasLtMatrixLayoutDestroy(layout);
    }
    cublasLtMatmulDescDestroy(product);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return status;
  }

  cublasLtHandle_t handle_ = nullptr;
};

// Element (row, col) of op(x).
double Element(const std::vector<float>& x, bool transpose, int64_t rows, int64_t cols, int64_t row,
               int64_t col) {
  return x[transpose ? row * cols + col : col * rows + row];
}

TEST_F(CublasLtTest, MultipliesAllFormsOfOperands) {
  for (int form = 0; form < 8; ++form) {
    Request request;
    request.transpose_a = (form & 1) != 0;
    request.transpose_b = (form & 2) != 0;
    request.alpha = 0.5f;
    request.beta = (form & 4) != 0 ? 2 : 0;
    const auto [m, n, k] = std::tuple(request.m, request.n, request.k);
    const std::vector<float> a = Random(m * k, 1), b = Random(k * n, 2), c = Random(m * n, 3);
    GpuFloats gpu_a(a), gpu_b(b);
    // Without beta, what was there is not read.
    GpuFloats gpu_d(request.beta == 0 ? std::vector<float>(c.size(), NAN) : c);
    ASSERT_EQ(Multiply(request, gpu_a.data(), gpu_b.data(), gpu_d.data()), CUBLAS_STATUS_SUCCESS);
    const std::vector<float> d = gpu_d.Read();
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum += Element(a, request.transpose_a, m, k, row, i) *
                 Element(b, request.transpose_b, k, n, i, col);
        }
        const size_t at = col * m + row;
        EXPECT_NEAR(d[at], 0.5 * sum + double{request.beta} * c[at], 1e-6) << "form " << form;
      }
    }
  }
  EXPECT_EQ(CurrentStatistics().products, 8);
}

TEST_F(CublasLtTest, EpiloguesOfBiasAndRelu) {
  GpuFloats a({1, 2}), b({1, -1}), bias({10, -30}), d(4);
  Request request;
  request.m = request.n = 2;
  request.k = 1;
  request.vector = bias.data();
  // The product is [1 2; -1 -2], column by column.
  request.epilogue = CUBLASLT_EPILOGUE_BIAS;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(11, -28, 9, -32));
  request.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(11, 0, 9, 0));
  request.epilogue = CUBLASLT_EPILOGUE_RELU;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(1, 2, 0, 0));
}

TEST_F(CublasLtTest, EpiloguesOfSumsOfTheOperands) {
  GpuFloats a({1, 2, 3, 4, 5, 6}), b({1, 0, 0, 7, 8, 9}), sums(2), d(4);
  Request request;
  request.m = request.n = 2;
  request.k = 3;
  request.vector = sums.data();
  request.epilogue = CUBLASLT_EPILOGUE_BGRADA;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(sums.Read(), ElementsAre(9, 12));
  EXPECT_THAT(d.Read(), ElementsAre(1, 2, 76, 100));
  request.epilogue = CUBLASLT_EPILOGUE_BGRADB;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(sums.Read(), ElementsAre(1, 24));
}

TEST_F(CublasLtTest, Tf32RoundsTheOperandsToTenBits) {
  const float a_little = 1 + 1.0f / 4096;  // of which ten bits keep nothing
  GpuFloats a({a_little}), b({1}), d(1);
  Request request;
  request.m = request.n = request.k = 1;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(a_little));
  request.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(1));
}

TEST_F(CublasLtTest, MultipliesBfloat16) {
  // Two bfloat16 in each float: 2 and 1.
  GpuFloats halves({__uint_as_float(0x3f804000u)}), d(1);
  Request request;
  request.m = request.n = 1;
  request.k = 2;
  request.operands = CUDA_R_16BF;
  EXPECT_EQ(Multiply(request, halves.data(), halves.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d.Read(), ElementsAre(5));
}

TEST_F(CublasLtTest, RefusesWhatIsWrong) {
  GpuFloats a(35), b(21), d(15);
  Request request;
  EXPECT_EQ(Multiply(request, nullptr, b.data(), d.data()), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data(), /*with_workspace=*/false),
            CUBLAS_STATUS_INVALID_VALUE);
  request.extra_ld = -1;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_INVALID_VALUE);
  // With gaps, d would have to be larger.
  request.extra_ld = 1;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_THAT(Complaints(), Contains(HasSubstr("a product's D: ")));
  request.extra_ld = 0;
  request.epilogue = CUBLASLT_EPILOGUE_BIAS;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_INVALID_VALUE);
  // An unaligned bias: there is no algorithm.
  request.vector = a.data() + 1;
  EXPECT_EQ(Multiply(request, a.data(), b.data(), d.data()), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasLtTest, FailsWhenItIsToldTo) {
  GpuFloats a(35), b(21), d(15);
  FailCall("cublasLtMatmul", 1, CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(Multiply({}, a.data(), b.data(), d.data()), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(Multiply({}, a.data(), b.data(), d.data()), CUBLAS_STATUS_SUCCESS);
}

__global__ void SetOneKernel(float value, float* x) { *x = value; }

class NcclTest : public EmulationTest {
 protected:
  static constexpr int kRanks = 3;

  static void Open(uint64_t seed) {
    Options options = WithSeed(seed);
    options.gpus = kRanks;
    Reset(options);
  }
};

// The objects of one GPU: a stream, and a float that a kernel writes on it.
struct Rank {
  explicit Rank(int gpu) : gpu(gpu), x({0}) {}
  int gpu;
  GpuFloats x;
  Stream stream;
};

TEST_F(NcclTest, ReducesToTheRootInTheOrderOfTheStreams) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Open(seed);
    ncclComm_t communicators[kRanks];
    ASSERT_EQ(ncclCommInitAll(communicators, kRanks, nullptr), ncclSuccess);
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int i = 0; i < kRanks; ++i) {
      ASSERT_EQ(cudaSetDevice(i), cudaSuccess);
      ranks.push_back(std::make_unique<Rank>(i));
      EXPECT_EQ(Start(1, 1, ranks[i]->stream.get(), &SetOneKernel, static_cast<float>(1 << i),
                      ranks[i]->x.data()),
                cudaSuccess);
    }
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (const auto& rank : ranks) {
      EXPECT_EQ(ncclReduce(rank->x.data(), rank->x.data(), 1, ncclFloat32, ncclSum, 0,
                           communicators[rank->gpu], rank->stream.get()),
                ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    // After its part, a rank may write again.
    for (const auto& rank : ranks) {
      if (rank->gpu == 0) continue;
      EXPECT_EQ(cudaSetDevice(rank->gpu), cudaSuccess);
      EXPECT_EQ(Start(1, 1, rank->stream.get(), &SetOneKernel, 100.0f, rank->x.data()),
                cudaSuccess);
    }
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(ranks[0]->stream.get()), cudaSuccess);
    ASSERT_THAT(ranks[0]->x.Read(), ElementsAre(7)) << "seed " << seed;
    for (ncclComm_t communicator : communicators) {
      EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
    }
  }
}

TEST_F(NcclTest, AReductionThatLacksARankFails) {
  Open(1);
  ncclComm_t communicators[kRanks];
  ASSERT_EQ(ncclCommInitAll(communicators, kRanks, nullptr), ncclSuccess);
  GpuFloats x({1});
  EXPECT_EQ(ncclReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, 0, communicators[0], nullptr),
            ncclInvalidUsage);
  EXPECT_THAT(Complaints(), ElementsAre(HasSubstr("a reduction lacks ranks")));
  EXPECT_EQ(
      ncclReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, kRanks, communicators[0], nullptr),
      ncclInvalidArgument);
  const int no_such_gpu = kRanks;
  ncclComm_t none = nullptr;
  EXPECT_EQ(ncclCommInitAll(&none, 1, &no_such_gpu), ncclInvalidArgument);
  for (ncclComm_t communicator : communicators) ncclCommDestroy(communicator);
}

}  // namespace
}  // namespace keelson::cuda_emulation
