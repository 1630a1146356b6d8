// A device for tests that reveals missing waits of a caller.
#ifndef KEELSON_TESTING_DEVICE_DELAYED_DEVICE_TESTING_H_
#define KEELSON_TESTING_DEVICE_DELAYED_DEVICE_TESTING_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.h"

namespace keelson {

// Computes as `inner`, the CPU's device, but like a GPU: calls return before their operations are
// done, the host cannot use its memory, and Repeat repeats the recorded calls. Nothing is done
// before it is waited for, and then operations, uploads and downloads take turns in an order that
// `seed` chooses among those that device.h allows. A call that device.h forbids within Repeat, or a
// wait that would never end, aborts the program.
class DelayedDevice : public Device {
 public:
  DelayedDevice(std::unique_ptr<Device> inner, uint64_t seed)
      : inner_(std::move(inner)), random_(seed) {}
  ~DelayedDevice() override { Drain(); }

  // Calls of Repeat that repeated what had been recorded.
  int64_t repetitions() const { return repetitions_; }
  // An Allocate that makes the sum larger than this is RESOURCE_EXHAUSTED.
  void set_memory_limit(int64_t floats) { memory_limit_ = floats; }

  std::string name() const override { return inner_->name(); }
  bool asynchronous() const override { return true; }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override;
  absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(size_t bytes) override;
  absl::Span<float> HostSpan(DeviceMemory* /*memory*/) override { return {}; }
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override;
  void CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) override;
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override;
  void Fill(float value, int64_t n, DeviceMemory* x) override;
  absl::Status Synchronize() override;
  absl::Status status() const override { return inner_->status(); }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() override;
  void Record(DeviceEvent* event) override;
  void WaitFor(const DeviceEvent& event) override;
  bool Passed(const DeviceEvent& event) override;
  absl::Status Await(const DeviceEvent& event) override;
  double MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) override;
  absl::StatusOr<std::unique_ptr<GradientEncoder>> NewGradientEncoder(
      const WireLayout& layout) override;
  absl::StatusOr<std::unique_ptr<ValueDecoder>> NewValueDecoder(WireFormat format,
                                                                int64_t elements) override;
  void Download(const DeviceMemory& gradient, const DeviceMemory* gate, GradientEncoder* encoder,
                absl::Span<uint8_t> to, DeviceEvent* done) override;
  void Upload(absl::Span<const uint8_t> from, const DeviceEvent* after, ValueDecoder* decoder,
              DeviceMemory* to, DeviceEvent* done) override;
  void Repeat(uint64_t key, absl::FunctionRef<void()> operations) override;
  void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
              const Epilogue& epilogue, DeviceMemory* c) override;
  void DenseGradients(int64_t rows, int64_t inputs, int64_t units, const DeviceMemory& x,
                      const DeviceMemory& dy, DeviceMemory* kernel_gradient,
                      DeviceMemory* bias_gradient) override;
  void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                    DeviceMemory* bias_gradient) override;
  void MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x, float beta,
                      DeviceMemory* y) override;
  void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void Scale(float alpha, int64_t n, DeviceMemory* x) override;
  void Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) override;
  void ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) override;
  void AddFromPeer(Device* peer, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x, const DeviceMemory& filter,
              const Epilogue& epilogue, DeviceMemory* y) override;
  void Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                          const DeviceMemory& dy, DeviceMemory* dx) override;
  void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dfilter) override;
  void MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override;
  void MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x, const DeviceMemory& y,
                       const DeviceMemory& dy, DeviceMemory* dx) override;
  void AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override;
  void AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                       DeviceMemory* dx) override;
  void GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels, const DeviceMemory& x,
                         DeviceMemory* y) override;
  void GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                 const DeviceMemory& dy, DeviceMemory* dx) override;
  void Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override;
  void Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override;
  void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                        const DeviceMemory& dy, DeviceMemory* dx) override;
  void Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void GateBackward(GateKind kind, int64_t n, const DeviceMemory& x, const DeviceMemory& dy,
                    DeviceMemory* dx) override;
  void SetSeed(uint64_t seed) override;
  void Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
               DeviceMemory* y) override;
  void CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from, int64_t from_columns,
                   int64_t from_begin, DeviceMemory* to, int64_t to_columns,
                   int64_t to_begin) override;
  void ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                 DeviceMemory* x) override;
  void AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                    DeviceMemory* x) override;
  void RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
               const DeviceMemory& b, float beta, DeviceMemory* y) override;
  void AddScaledRows(int64_t rows, int64_t columns, float alpha, const DeviceMemory& factors,
                     const DeviceMemory& x, float beta, DeviceMemory* y) override;
  void PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override;
  void PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dx) override;
  void Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                 DeviceMemory* y) override;
  void InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x, DeviceMemory* y) override;
  void Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) override;
  void SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y, const DeviceMemory& dy,
                       DeviceMemory* dx) override;
  void BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* variance, DeviceMemory* y) override;
  void BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& variance, const DeviceMemory& dy, DeviceMemory* dgamma,
                         DeviceMemory* dbeta, DeviceMemory* dx) override;
  void BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                          const DeviceMemory* gamma, const DeviceMemory* beta,
                          const DeviceMemory& mean, const DeviceMemory& variance,
                          DeviceMemory* y) override;
  void LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* inverse_deviation, DeviceMemory* y) override;
  void LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                         DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) override;
  void SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override;
  void SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override;
  void MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                        const DeviceMemory& targets, DeviceMemory* losses,
                        DeviceMemory* dscores) override;
  void HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                 const DeviceMemory& targets, DeviceMemory* losses, DeviceMemory* dscores) override;

  // Methods for the objects that it creates.

  // Executes all queued work.
  void Drain();
  // Also forgets what Repeat recorded.
  void Free(int64_t floats);

 private:
  using Condition = std::function<bool()>;
  using Action = std::function<void()>;
  struct Task {
    Condition ready;  // null: at once
    Action action;
  };
  struct Stream {
    std::deque<Task> tasks;
    int64_t pushed = 0;
    int64_t done = 0;
  };

  // Does it, and records it in Repeat.
  void Call(Action call);
  // Enqueues an operation.
  void Compute(Action operation);
  // Aborts the program for a call that Repeat does not allow.
  void RefuseInRepeat(const char* call) const;
  static void Push(Stream* stream, Condition ready, Action action);
  // When the operations so far are done.
  Condition AfterOperations() const;
  // Does the next task of a stream that has one which is ready.
  void RunOne();
  void RunUntil(const Condition& reached);

  const std::unique_ptr<Device> inner_;
  std::mt19937_64 random_;
  std::array<Stream, 3> streams_;
  Stream& compute_ = streams_[0];
  Stream& upload_ = streams_[1];
  Stream& download_ = streams_[2];
  size_t favoured_ = 0;
  std::vector<Action>* recording_ = nullptr;
  std::map<uint64_t, std::vector<Action>> recordings_;
  int64_t repetitions_ = 0;
  int64_t memory_limit_ = std::numeric_limits<int64_t>::max();
  int64_t allocated_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_TESTING_DEVICE_DELAYED_DEVICE_TESTING_H_
