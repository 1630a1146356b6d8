#include "core/device/cuda/cuda_matmul.h"

#include "core/device/cuda/kernels.h"

namespace keelson {
namespace {

cublasOperation_t Operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

// The product of no terms is 0.
void ScaleOrClear(int64_t n, float beta, float* c, CudaContext* context) {
  if (beta == 0) {
    context->Check("FillKernel", cuda::LaunchFill(context->stream(), 0, n, c));
  } else {
    context->Check("ScaleKernel", cuda::LaunchScale(context->stream(), beta, n, c));
  }
}

}  // namespace

// cuBLAS reads column by column. A row-major matrix read so is its transpose, and the transpose of
// c is op(b)^T op(a)^T: the operands change places, and nothing moves.
void CudaMatMul(const MatMulArgs& args, const float* a, const float* b, float* c,
                CudaContext* context) {
  if (args.m == 0 || args.n == 0) return;
  if (args.k == 0) return ScaleOrClear(args.m * args.n, args.beta, c, context);
  const int64_t row_of_a = args.transpose_a ? args.m : args.k;
  const int64_t row_of_b = args.transpose_b ? args.k : args.n;
  context->Check("cublasSgemm",
                 cublasSgemm_64(context->blas(), Operation(args.transpose_b),
                                Operation(args.transpose_a), args.n, args.m, args.k, &args.alpha, b,
                                row_of_b, a, row_of_a, &args.beta, c, args.n));
}

}  // namespace keelson
