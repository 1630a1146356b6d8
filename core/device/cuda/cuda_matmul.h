// Matrix products by cuBLASLt.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_memory.h"
#include "core/device/geometry.h"

namespace keelson {

// The operations on each element of a product: the bias [columns] is added, then the activation is
// applied.
struct CudaEpilogue {
  const float* bias = nullptr;
  std::optional<ActivationKind> activation = std::nullopt;
};

// Products of row-major matrices on device addresses, on the compute stream. The precision is the
// context's: float32 throughout, TF32 operands, or bfloat16 operands that kernels convert; sums and
// results are float32. The algorithm is the first that cuBLASLt proposes for the extents, so it is
// the same in every run. All calls are made within an operation begun on the context, which takes a
// failure.
class CudaProducts {
 public:
  // `context` must outlive this object.
  explicit CudaProducts(CudaContext* context);
  ~CudaProducts();
  CudaProducts(const CudaProducts&) = delete;
  CudaProducts& operator=(const CudaProducts&) = delete;

  // Allocates the workspace, 32 MiB. RESOURCE_EXHAUSTED: out of memory.
  absl::Status Open();

  // c = alpha * op(a) op(b) + beta * c, and the epilogue on it.
  void MatMul(const MatMulArgs& args, const float* a, const float* b, const CudaEpilogue& epilogue,
              float* c);
  // The same with `a` in bfloat16 already; in that precision only.
  void MatMul(const MatMulArgs& args, const uint16_t* a, const float* b,
              const CudaEpilogue& epilogue, float* c);
  // kernel_gradient [inputs, units] = x^T dy for x [rows, inputs] and dy [rows, units]; unless it
  // is null, bias_gradient [units] = the sums of dy's columns.
  void DenseGradients(int64_t rows, int64_t inputs, int64_t units, const float* x, const float* dy,
                      float* kernel_gradient, float* bias_gradient);
  // sums [cols] of x [rows, cols].
  void ColumnSums(int64_t rows, int64_t cols, const float* x, float* sums);

 private:
  // The properties on which cuBLASLt's choice of an algorithm depends.
  struct PlanKey {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    // The addresses' alignments in bytes, at most 256.
    uint32_t alignment_a, alignment_b, alignment_c, alignment_vector;

    friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
  };
  struct Plan;
  // The arguments of one product for cuBLASLt.
  struct Call {
    MatMulArgs args;
    const void* a;
    const void* b;
    float* c;
    cublasLtEpilogue_t epilogue;
    const float* vector;  // bias, or where its gradient goes; null: neither
  };

  bool bfloat16() const { return context_->precision() == Precision::kBfloat16; }
  // Returns `x` in the precision of operands; valid until the next call with the same scratch.
  const void* Operand(const float* x, int64_t n, CudaScratch* scratch);
  void MultiplyOperands(const MatMulArgs& args, const void* a, const void* b,
                        const CudaEpilogue& epilogue, float* c);
  // False: cuBLASLt does not support the epilogue for this product, and nothing was done.
  bool Try(const Call& call);
  Plan* PlanFor(const Call& call);
  std::unique_ptr<Plan> MakePlan(const Call& call, const PlanKey& key);
  bool Describe(const Call& call, Plan* plan);
  bool ChooseAlgorithm(const PlanKey& key, Plan* plan);

  CudaContext* const context_;
  CudaBuffer workspace_;
  CudaScratch converted_a_;
  CudaScratch converted_b_;
  CudaScratch partial_sums_;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_
