// Starts the kernels of a CUDA device. Each call puts its work on `stream` and returns without
// waiting: the result is that of the launches. Pointers are device addresses, aligned as their type
// demands; from multiples of 16 on, kernels are faster. Extents and formulas are those of
// core/device/device.h. An extent of 0 launches nothing, unless stated otherwise. `scratch` is
// device memory from a multiple of 16 on, whose content is undefined before and after; the function
// named ...Scratch says how much. Every sum is taken in an order that depends on the extents and
// the alignment alone. All calls may be captured into a graph: they read the host's memory only
// before they return.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_KERNELS_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "core/device/geometry.h"

namespace keelson::cuda {

// cudaSuccess when this program holds kernels for the current GPU.
cudaError_t FindKernels();

// elementwise.cu

cudaError_t LaunchFill(cudaStream_t stream, float value, int64_t n, float* x);
cudaError_t LaunchAxpy(cudaStream_t stream, float alpha, int64_t n, const float* x, float* y);
cudaError_t LaunchScale(cudaStream_t stream, float alpha, int64_t n, float* x);
// y may be x.
cudaError_t LaunchCopy(cudaStream_t stream, int64_t n, const float* x, float* y);
// y may be a or b, or both.
cudaError_t LaunchAdd(cudaStream_t stream, int64_t n, const float* a, const float* b, float* y);
cudaError_t LaunchMultiply(cudaStream_t stream, int64_t n, const float* a, const float* b,
                           float* y);
// y may be x.
cudaError_t LaunchInverseSquareRoot(cudaStream_t stream, int64_t n, float epsilon, const float* x,
                                    float* y);
// y may be x.
cudaError_t LaunchActivate(cudaStream_t stream, ActivationKind kind, int64_t n, const float* x,
                           float* y);
// dx may be dy.
cudaError_t LaunchActivateBackward(cudaStream_t stream, ActivationKind kind, int64_t n,
                                   const float* y, const float* dy, float* dx);
// y may be x.
cudaError_t LaunchGate(cudaStream_t stream, GateKind kind, int64_t n, const float* x, float* y);
// dx may be dy.
cudaError_t LaunchGateBackward(cudaStream_t stream, GateKind kind, int64_t n, const float* x,
                               const float* dy, float* dx);
// The seed is read when the kernel runs; `philox_stream` is the `stream` of Device::Dropout. y may
// be x.
cudaError_t LaunchDropout(cudaStream_t stream, float rate, const uint64_t* seed,
                          uint64_t philox_stream, int64_t n, const float* x, float* y);
// bfloat16, rounded as the wire format is.
cudaError_t LaunchToBfloat16(cudaStream_t stream, int64_t n, const float* x, uint16_t* y);

// columnwise.cu

// y [rows, cols]: adds bias [cols] to each row unless it is null, then applies the activation.
cudaError_t LaunchBiasActivation(cudaStream_t stream, int64_t rows, int64_t cols, const float* bias,
                                 std::optional<ActivationKind> activation, float* y);
// Floats.
int64_t ColumnSumsScratch(int64_t rows, int64_t cols);
// sums [cols] of x [rows, cols].
cudaError_t LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t cols, const float* x,
                             float* scratch, float* sums);

// `from` and `to` are the first elements of blocks of columns, in matrices of so many columns.
cudaError_t LaunchCopyColumns(cudaStream_t stream, int64_t rows, int64_t columns, const float* from,
                              int64_t from_columns, float* to, int64_t to_columns);

cudaError_t LaunchGlobalAveragePool(cudaStream_t stream, int64_t rows, int64_t positions,
                                    int64_t channels, const float* x, float* y);
cudaError_t LaunchGlobalAveragePoolBackward(cudaStream_t stream, int64_t rows, int64_t positions,
                                            int64_t channels, const float* dy, float* dx);

// rowwise.cu

cudaError_t LaunchScaleRows(cudaStream_t stream, int64_t rows, int64_t columns,
                            const float* factors, float* x);
cudaError_t LaunchAddRowVector(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                               const float* v, float* x);
// Over no columns the sums are 0.
cudaError_t LaunchRowDots(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                          const float* a, const float* b, float beta, float* y);
cudaError_t LaunchAddScaledRows(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                                const float* factors, const float* x, float beta, float* y);

// pairwise.cu

cudaError_t LaunchPairwiseDots(cudaStream_t stream, const PairGeometry& geometry, const float* x,
                               float* y);
cudaError_t LaunchPairwiseDotsBackward(cudaStream_t stream, const PairGeometry& geometry,
                                       const float* x, const float* dy, float* dx);

// transpose.cu

cudaError_t LaunchTranspose(cudaStream_t stream, const TransposeGeometry& geometry, const float* x,
                            float* y);

// sparse_product.cu

// SparseRows on the device.
struct SparseArrays {
  int64_t capacity = 0;
  const int32_t* stored = nullptr;
  const int32_t* rows = nullptr;
  const int32_t* offsets = nullptr;
  const int32_t* columns = nullptr;
  const float* coefficients = nullptr;
};
// Launches threads for as many rows as the capacity; those that are stored have work.
cudaError_t LaunchMultiplySparse(cudaStream_t stream, const SparseArrays& a, int64_t width,
                                 const float* x, float beta, float* y);

// softmax.cu

// y may be x.
cudaError_t LaunchSoftmax(cudaStream_t stream, int64_t rows, int64_t columns, const float* x,
                          float* y);
// dx may be dy.
cudaError_t LaunchSoftmaxBackward(cudaStream_t stream, int64_t rows, int64_t columns,
                                  const float* y, const float* dy, float* dx);

// batch_norm.cu

// Floats; for LaunchBatchNorm and LaunchBatchNormBackward.
int64_t BatchNormScratch(const BatchNormGeometry& geometry);
cudaError_t LaunchBatchNorm(cudaStream_t stream, const BatchNormGeometry& geometry, const float* x,
                            const float* gamma, const float* beta, float* scratch, float* mean,
                            float* variance, float* y);
cudaError_t LaunchBatchNormBackward(cudaStream_t stream, const BatchNormGeometry& geometry,
                                    const float* x, const float* gamma, const float* mean,
                                    const float* variance, const float* dy, float* scratch,
                                    float* dgamma, float* dbeta, float* dx);
cudaError_t LaunchBatchNormInference(cudaStream_t stream, const BatchNormGeometry& geometry,
                                     const float* x, const float* gamma, const float* beta,
                                     const float* mean, const float* variance, float* y);

// layer_norm.cu

cudaError_t LaunchLayerNorm(cudaStream_t stream, const LayerNormGeometry& geometry, const float* x,
                            const float* gamma, const float* beta, float* mean,
                            float* inverse_deviation, float* y);
// Floats.
int64_t LayerNormScratch(const LayerNormGeometry& geometry);
// The gradients of gamma and beta over no rows are 0. dx may be dy.
cudaError_t LaunchLayerNormBackward(cudaStream_t stream, const LayerNormGeometry& geometry,
                                    const float* x, const float* gamma, const float* mean,
                                    const float* inverse_deviation, const float* dy, float* scratch,
                                    float* dgamma, float* dbeta, float* dx);

// window.cu

// columns [batch * out_height * out_width, kernel * kernel * in_channels], from a multiple of 16 on
// (else cudaErrorInvalidValue).
cudaError_t LaunchImageToColumns(cudaStream_t stream, const ConvGeometry& geometry, const float* x,
                                 float* columns);
// The same as bfloat16.
cudaError_t LaunchImageToBfloat16Columns(cudaStream_t stream, const ConvGeometry& geometry,
                                         const float* x, uint16_t* columns);
cudaError_t LaunchColumnsToImage(cudaStream_t stream, const ConvGeometry& geometry,
                                 const float* dcolumns, float* dx);

// pool.cu

cudaError_t LaunchMaxPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y);
cudaError_t LaunchMaxPoolBackward(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                                  const float* y, const float* dy, float* dx);
cudaError_t LaunchAvgPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y);
cudaError_t LaunchAvgPoolBackward(cudaStream_t stream, const PoolGeometry& geometry,
                                  const float* dy, float* dx);

// reduction.cu

// Floats.
int64_t SumScratch(int64_t n);
// sum [1] of x [n]; 0 of no elements.
cudaError_t LaunchSum(cudaStream_t stream, int64_t n, const float* x, float* scratch, float* sum);

struct FloatArray {
  float* data;
  int64_t size;
};
// Floats.
int64_t ClipScratch(int64_t num_arrays);
// Device::ClipByGlobalNorm; `arrays` is in the host's memory.
cudaError_t LaunchClipByGlobalNorm(cudaStream_t stream, float max_norm, const FloatArray* arrays,
                                   int64_t num_arrays, float* scratch);

// loss.cu

// `dscores` may be null.
cudaError_t LaunchSoftmaxCrossEntropy(cudaStream_t stream, int64_t rows, int64_t classes,
                                      float weight, const float* scores, const float* labels,
                                      float* losses, float* dscores);
cudaError_t LaunchSigmoidCrossEntropy(cudaStream_t stream, int64_t rows, float weight,
                                      const float* scores, const float* labels, float* losses,
                                      float* dscores);
cudaError_t LaunchMeanSquaredError(cudaStream_t stream, int64_t rows, float weight,
                                   const float* scores, const float* targets, float* losses,
                                   float* dscores);
cudaError_t LaunchHuberLoss(cudaStream_t stream, int64_t rows, float delta, float weight,
                            const float* scores, const float* targets, float* losses,
                            float* dscores);

// wire_codec.cu, wire_top_k.cu: formats of core/wire/wire_format.h, bit by bit as
// core/wire/value_codec.h writes and reads them. wire_tables.h makes the tables of a WireLayout.
// Bytes on the device begin at a multiple of 16.

// The part of a block that a thread block encodes at a time.
constexpr int64_t kWireTileElements = 1024;  // at most
struct WireTile {
  int64_t first_element;  // of the array
  int64_t offset;         // in bytes, of its first element's code (int8: of the group's scale)
  int32_t num_elements;   // 1 to kWireTileElements
  int32_t block;          // in the table of blocks; top-k
};

// A block of top-k.
struct WireTopKBlock {
  int64_t first_element;
  int64_t num_elements;
  int64_t offset;
  int64_t count;  // elements that are sent, 1 to num_elements
  int64_t first_tile;
  int64_t num_tiles;
};

// Tables on the device.
struct WireTables {
  const WireTile* tiles;
  int64_t num_tiles;
  const WireTopKBlock* blocks;  // top-k
  int64_t num_blocks;
};

cudaError_t LaunchEncodeFloat16(cudaStream_t stream, const WireTables& tables,
                                const float* gradient, uint8_t* to);
cudaError_t LaunchEncodeBfloat16(cudaStream_t stream, const WireTables& tables,
                                 const float* gradient, uint8_t* to);
// `residual` has a float per element of the array. `gate` may be null; when gate[0] is not finite
// nothing is written.
cudaError_t LaunchEncodeInt8(cudaStream_t stream, const WireTables& tables, const float* gradient,
                             const float* gate, float* residual, uint8_t* to);
// Bytes.
int64_t EncodeTopKScratch(const WireTables& tables);
cudaError_t LaunchEncodeTopK(cudaStream_t stream, const WireTables& tables, const float* gradient,
                             const float* gate, void* scratch, float* residual, uint8_t* to);
// Decodes one array of n elements.
cudaError_t LaunchDecodeFloat16(cudaStream_t stream, int64_t n, const uint8_t* from, float* to);
cudaError_t LaunchDecodeBfloat16(cudaStream_t stream, int64_t n, const uint8_t* from, float* to);

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_KERNELS_H_
