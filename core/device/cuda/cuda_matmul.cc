#include "core/device/cuda/cuda_matmul.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kMostPlans = 1024;

cublasOperation_t Transposed(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

uint32_t Alignment(const void* address) {
  constexpr uintptr_t kMost = 256;
  const auto bits = reinterpret_cast<uintptr_t>(address) | kMost;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

cublasComputeType_t ComputeType(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// A bias by itself is added by cuBLASLt. Its ReLU is not used: some of its algorithms make 0 of NaN
// (on an H100 those of bfloat16, and of thin products in each precision), which would hide that a
// training has diverged.
cublasLtEpilogue_t FusedEpilogue(const CudaEpilogue& epilogue) {
  const bool fused = epilogue.bias != nullptr && !epilogue.activation;
  return fused ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

// cuBLASLt reads column by column. To it a row-major matrix is its transpose, and the transpose of
// c is op(b)^T op(a)^T: so the operands are swapped, and nothing is copied.
struct CudaProducts::Plan {
  explicit Plan(CudaContext* context) : context(context) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout == nullptr) continue;
      context->Check("cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy(layout));
    }
    if (product == nullptr) return;
    context->Check("cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy(product));
  }

  CudaContext* const context;
  bool possible = false;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr;   // of b
  cublasLtMatrixLayout_t second = nullptr;  // of a
  cublasLtMatrixLayout_t result = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

CudaProducts::CudaProducts(CudaContext* context)
    : context_(context), converted_a_(context), converted_b_(context), partial_sums_(context) {}

CudaProducts::~CudaProducts() = default;

absl::Status CudaProducts::Open() {
  ASSIGN_OR_RETURN(workspace_, AllocateCudaBuffer(kWorkspaceBytes, context_));
  return absl::OkStatus();
}

const void* CudaProducts::Operand(const float* x, int64_t n, CudaScratch* scratch) {
  if (!bfloat16()) return x;
  auto* const converted = scratch->Get<uint16_t>(n);
  if (converted == nullptr ||
      !context_->Check("ToBfloat16Kernel",
                       cuda::LaunchToBfloat16(context_->compute(), n, x, converted))) {
    return nullptr;
  }
  return converted;
}

void CudaProducts::MatMul(const MatMulArgs& args, const float* a, const float* b,
                          const CudaEpilogue& epilogue, float* c) {
  const void* const operand_a = Operand(a, args.m * args.k, &converted_a_);
  const void* const operand_b = Operand(b, args.k * args.n, &converted_b_);
  MultiplyOperands(args, operand_a, operand_b, epilogue, c);
}

void CudaProducts::MatMul(const MatMulArgs& args, const uint16_t* a, const float* b,
                          const CudaEpilogue& epilogue, float* c) {
  MultiplyOperands(args, a, Operand(b, args.k * args.n, &converted_b_), epilogue, c);
}

void CudaProducts::MultiplyOperands(const MatMulArgs& args, const void* a, const void* b,
                                    const CudaEpilogue& epilogue, float* c) {
  if (args.m == 0 || args.n == 0 || !context_->status().ok()) return;
  const cudaStream_t stream = context_->compute();
  CudaEpilogue left = epilogue;
  if (args.k == 0) {
    // An empty product is 0.
    const int64_t n = args.m * args.n;
    context_->Check("FillKernel", args.beta == 0 ? cuda::LaunchFill(stream, 0, n, c)
                                                 : cuda::LaunchScale(stream, args.beta, n, c));
  } else if (const cublasLtEpilogue_t fused = FusedEpilogue(epilogue);
             fused != CUBLASLT_EPILOGUE_DEFAULT && Try({args, a, b, c, fused, epilogue.bias})) {
    left.bias = nullptr;
  } else if (!Try({args, a, b, c, CUBLASLT_EPILOGUE_DEFAULT, nullptr})) {
    context_->Fail(context_->Error(absl::StrCat("cublasLtMatmulAlgoGetHeuristic: no algorithm for ",
                                                args.m, " x ", args.n, " x ", args.k)));
  }
  if (!context_->status().ok() || (left.bias == nullptr && !left.activation)) return;
  context_->Check(
      "BiasActivationKernel",
      cuda::LaunchBiasActivation(stream, args.m, args.n, left.bias, left.activation, c));
}

void CudaProducts::DenseGradients(int64_t rows, int64_t inputs, int64_t units, const float* x,
                                  const float* dy, float* kernel_gradient, float* bias_gradient) {
  MatMulArgs args;
  args.m = inputs;
  args.n = units;
  args.k = rows;
  args.transpose_a = true;
  // The other precisions would round what the bias' gradient sums up.
  const bool fused = bias_gradient != nullptr && context_->precision() == Precision::kFloat32 &&
                     rows > 0 && inputs > 0 && units > 0 &&
                     Try({args, x, dy, kernel_gradient, CUBLASLT_EPILOGUE_BGRADA, bias_gradient});
  if (fused || !context_->status().ok()) return;
  MatMul(args, x, dy, {}, kernel_gradient);
  if (bias_gradient != nullptr) ColumnSums(rows, units, dy, bias_gradient);
}

void CudaProducts::ColumnSums(int64_t rows, int64_t cols, const float* x, float* sums) {
  float* const partial = partial_sums_.Get<float>(cuda::ColumnSumsScratch(rows, cols));
  if (!context_->status().ok()) return;
  context_->Check("ColumnSumsKernel",
                  cuda::LaunchColumnSums(context_->compute(), rows, cols, x, partial, sums));
}

bool CudaProducts::Try(const Call& call) {
  Plan* const plan = PlanFor(call);
  if (plan == nullptr) return true;  // the context has taken the failure
  if (!plan->possible) return false;
  if (call.vector != nullptr &&
      !context_->Check(
          "cublasLtMatmulDescSetAttribute",
          cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                         &call.vector, sizeof(call.vector)))) {
    return true;
  }
  context_->Check(
      "cublasLtMatmul",
      cublasLtMatmul(context_->blas(), plan->product, &call.args.alpha, call.b, plan->first, call.a,
                     plan->second, &call.args.beta, call.c, plan->result, call.c, plan->result,
                     &plan->algorithm, workspace_.get(), kWorkspaceBytes, context_->compute()));
  return true;
}

CudaProducts::Plan* CudaProducts::PlanFor(const Call& call) {
  const PlanKey key = {call.args.m,           call.args.n,           call.args.k,
                       call.args.transpose_a, call.args.transpose_b, call.epilogue,
                       Alignment(call.a),     Alignment(call.b),     Alignment(call.c),
                       Alignment(call.vector)};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second.get();
  if (plans_.size() == kMostPlans) plans_.clear();
  std::unique_ptr<Plan> plan = MakePlan(call, key);
  if (plan == nullptr) return nullptr;
  return plans_.emplace(key, std::move(plan)).first->second.get();
}

std::unique_ptr<CudaProducts::Plan> CudaProducts::MakePlan(const Call& call, const PlanKey& key) {
  auto plan = std::make_unique<Plan>(context_);
  if (!Describe(call, plan.get()) || !ChooseAlgorithm(key, plan.get())) return nullptr;
  return plan;
}

bool CudaProducts::Describe(const Call& call, Plan* plan) {
  const auto layout = [&](cublasLtMatrixLayout_t* matrix, cudaDataType_t type, int64_t rows,
                          int64_t row_size) {
    return context_->Check("cublasLtMatrixLayoutCreate",
                           cublasLtMatrixLayoutCreate(matrix, type, static_cast<uint64_t>(row_size),
                                                      static_cast<uint64_t>(rows), row_size));
  };
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return context_->Check(
        "cublasLtMatmulDescSetAttribute",
        cublasLtMatmulDescSetAttribute(plan->product, attribute, &value, sizeof(value)));
  };
  const auto& [m, n, k, transpose_a, transpose_b, alpha, beta] = call.args;
  const cudaDataType_t operands = bfloat16() ? CUDA_R_16BF : CUDA_R_32F;
  return layout(&plan->first, operands, transpose_b ? n : k, transpose_b ? k : n) &&
         layout(&plan->second, operands, transpose_a ? k : m, transpose_a ? m : k) &&
         layout(&plan->result, CUDA_R_32F, m, n) &&
         context_->Check("cublasLtMatmulDescCreate",
                         cublasLtMatmulDescCreate(
                             &plan->product, ComputeType(context_->precision()), CUDA_R_32F)) &&
         set(CUBLASLT_MATMUL_DESC_TRANSA, Transposed(transpose_b)) &&
         set(CUBLASLT_MATMUL_DESC_TRANSB, Transposed(transpose_a)) &&
         set(CUBLASLT_MATMUL_DESC_EPILOGUE, call.epilogue) &&
         (call.vector == nullptr || set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.vector));
}

bool CudaProducts::ChooseAlgorithm(const PlanKey& key, Plan* plan) {
  cublasLtMatmulPreference_t preference = nullptr;
  if (!context_->Check("cublasLtMatmulPreferenceCreate",
                       cublasLtMatmulPreferenceCreate(&preference))) {
    return false;
  }
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return context_->Check(
        "cublasLtMatmulPreferenceSetAttribute",
        cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
  };
  bool ok = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes}) &&
            set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignment_b) &&
            set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment_a) &&
            set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment_c) &&
            set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment_c);
  if (ok) {
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(context_->blas(), plan->product, plan->first, plan->second,
                                       plan->result, plan->result, preference, 1, &result, &found);
    // cuBLASLt does not support this product, or does not know the epilogue.
    const bool refused =
        status == CUBLAS_STATUS_NOT_SUPPORTED ||
        (status == CUBLAS_STATUS_INVALID_VALUE && key.epilogue != CUBLASLT_EPILOGUE_DEFAULT);
    ok = refused || context_->Check("cublasLtMatmulAlgoGetHeuristic", status);
    plan->possible =
        status == CUBLAS_STATUS_SUCCESS && found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    plan->algorithm = result.algo;
  }
  return context_->Check("cublasLtMatmulPreferenceDestroy",
                         cublasLtMatmulPreferenceDestroy(preference)) &&
         ok;
}

}  // namespace keelson
