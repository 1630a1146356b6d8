#include "testing/device/delayed_device_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

[[noreturn]] void Abort(const char* call, const char* reason) {
  std::fprintf(stderr, "delayed device: %s: %s\n", call, reason);
  std::abort();
}

class DelayedMemory : public DeviceMemory {
 public:
  DelayedMemory(DelayedDevice* device, std::unique_ptr<DeviceMemory> inner)
      : DeviceMemory(inner->data(), inner->size()), device_(device), inner_(std::move(inner)) {}
  ~DelayedMemory() override {
    device_->Drain();
    device_->Free(size());
  }

 private:
  DelayedDevice* const device_;
  const std::unique_ptr<DeviceMemory> inner_;
};

class DelayedEvent : public DeviceEvent {
 public:
  DelayedEvent(DelayedDevice* device, std::unique_ptr<DeviceEvent> inner)
      : device_(device), inner_(std::move(inner)) {}
  ~DelayedEvent() override { device_->Drain(); }

  // The number of the last call that records it.
  int64_t recorded() const { return recorded_; }
  int64_t NextRecord() { return ++recorded_; }
  bool HasPassed(int64_t record) const { return passed_ >= record; }
  void Pass(int64_t record) {
    passed_ = std::max(passed_, record);
    time_ = absl::Now();
  }
  absl::Time time() const { return time_; }
  DeviceEvent* inner() const { return inner_.get(); }

 private:
  DelayedDevice* const device_;
  const std::unique_ptr<DeviceEvent> inner_;
  int64_t recorded_ = 0;
  int64_t passed_ = 0;
  absl::Time time_;
};

DelayedEvent& AsDelayed(DeviceEvent* event) { return *static_cast<DelayedEvent*>(event); }
const DelayedEvent& AsDelayed(const DeviceEvent& event) {
  return static_cast<const DelayedEvent&>(event);
}

}  // namespace

void DelayedDevice::Push(Stream* stream, Condition ready, Action action) {
  ++stream->pushed;
  stream->tasks.push_back({std::move(ready), std::move(action)});
}

DelayedDevice::Condition DelayedDevice::AfterOperations() const {
  return [this, pushed = compute_.pushed] { return compute_.done >= pushed; };
}

void DelayedDevice::Call(Action call) {
  call();
  if (recording_ != nullptr) recording_->push_back(std::move(call));
}

void DelayedDevice::Compute(Action operation) {
  Call([this, operation = std::move(operation)] { Push(&compute_, nullptr, operation); });
}

void DelayedDevice::RefuseInRepeat(const char* call) const {
  if (recording_ != nullptr) Abort(call, "not allowed within Repeat");
}

void DelayedDevice::RunOne() {
  // Long runs of one stream are what takes the others by surprise.
  if (random_() % 16 == 0) favoured_ = random_() % streams_.size();
  Stream* chosen = nullptr;
  for (size_t i = 0; i < streams_.size() && chosen == nullptr; ++i) {
    Stream& stream = streams_[(favoured_ + i) % streams_.size()];
    if (stream.tasks.empty()) continue;
    const Condition& ready = stream.tasks.front().ready;
    if (ready == nullptr || ready()) chosen = &stream;
  }
  if (chosen == nullptr) Abort("wait", "nothing records the event");
  const Task task = std::move(chosen->tasks.front());
  chosen->tasks.pop_front();
  task.action();
  ++chosen->done;
}

void DelayedDevice::RunUntil(const Condition& reached) {
  while (!reached()) RunOne();
}

void DelayedDevice::Drain() {
  RunUntil([this] {
    return compute_.tasks.empty() && upload_.tasks.empty() && download_.tasks.empty();
  });
}

void DelayedDevice::Free(int64_t floats) {
  allocated_ -= floats;
  recordings_.clear();
}

absl::StatusOr<std::unique_ptr<DeviceMemory>> DelayedDevice::Allocate(int64_t floats) {
  if (floats > memory_limit_ - allocated_) {
    return absl::ResourceExhaustedError(absl::StrCat("device delayed: out of memory: asked for ",
                                                     floats, " floats, ",
                                                     memory_limit_ - allocated_, " are free"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> inner, inner_->Allocate(floats));
  allocated_ += floats;
  return std::make_unique<DelayedMemory>(this, std::move(inner));
}

absl::StatusOr<std::unique_ptr<HostMemory>> DelayedDevice::AllocateHost(size_t bytes) {
  return inner_->AllocateHost(bytes);
}

void DelayedDevice::CopyToDevice(absl::Span<const float> from, DeviceMemory* to) {
  RefuseInRepeat("CopyToDevice");
  Compute([this, copy = std::vector<float>(from.begin(), from.end()), to] {
    inner_->CopyToDevice(copy, to);
  });
}

void DelayedDevice::CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) {
  RefuseInRepeat("CopyIntegersToDevice");
  Compute([this, copy = std::vector<int32_t>(from.begin(), from.end()), to] {
    inner_->CopyIntegersToDevice(copy, to);
  });
}

absl::Status DelayedDevice::CopyToHost(const DeviceMemory& from, absl::Span<float> to) {
  RefuseInRepeat("CopyToHost");
  RunUntil(AfterOperations());
  return inner_->CopyToHost(from, to);
}

absl::Status DelayedDevice::Synchronize() {
  RefuseInRepeat("Synchronize");
  Drain();
  return inner_->Synchronize();
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> DelayedDevice::NewEvent() {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> inner, inner_->NewEvent());
  return std::make_unique<DelayedEvent>(this, std::move(inner));
}

void DelayedDevice::Record(DeviceEvent* event) {
  Call([this, e = &AsDelayed(event)] {
    Push(&compute_, nullptr, [e, record = e->NextRecord()] { e->Pass(record); });
  });
}

void DelayedDevice::WaitFor(const DeviceEvent& event) {
  Call([this, e = &AsDelayed(event)] {
    Push(
        &compute_, [e, record = e->recorded()] { return e->HasPassed(record); }, [] {});
  });
}

bool DelayedDevice::Passed(const DeviceEvent& event) {
  RefuseInRepeat("Passed");
  const DelayedEvent& e = AsDelayed(event);
  if (e.HasPassed(e.recorded())) return true;
  RunOne();
  return e.HasPassed(e.recorded());
}

absl::Status DelayedDevice::Await(const DeviceEvent& event) {
  RefuseInRepeat("Await");
  const DelayedEvent& e = AsDelayed(event);
  RunUntil([&e] { return e.HasPassed(e.recorded()); });
  return inner_->status();
}

double DelayedDevice::MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) {
  return absl::ToDoubleMilliseconds(AsDelayed(to).time() - AsDelayed(from).time());
}

absl::StatusOr<std::unique_ptr<GradientEncoder>> DelayedDevice::NewGradientEncoder(
    const WireLayout& layout) {
  return inner_->NewGradientEncoder(layout);
}

absl::StatusOr<std::unique_ptr<ValueDecoder>> DelayedDevice::NewValueDecoder(WireFormat format,
                                                                             int64_t elements) {
  return inner_->NewValueDecoder(format, elements);
}

void DelayedDevice::Download(const DeviceMemory& gradient, const DeviceMemory* gate,
                             GradientEncoder* encoder, absl::Span<uint8_t> to, DeviceEvent* done) {
  Call([this, gradient = &gradient, gate, encoder, to, e = &AsDelayed(done)] {
    Push(&download_, AfterOperations(),
         [this, gradient, gate, encoder, to, e, record = e->NextRecord()] {
           inner_->Download(*gradient, gate, encoder, to, e->inner());
           e->Pass(record);
         });
  });
}

void DelayedDevice::Upload(absl::Span<const uint8_t> from, const DeviceEvent* after,
                           ValueDecoder* decoder, DeviceMemory* to, DeviceEvent* done) {
  RefuseInRepeat("Upload");
  Condition ready = AfterOperations();
  if (after != nullptr) {
    const DelayedEvent& e = AsDelayed(*after);
    ready = [&e, record = e.recorded()] { return e.HasPassed(record); };
  }
  DelayedEvent& e = AsDelayed(done);
  Push(&upload_, std::move(ready), [this, from, decoder, to, &e, record = e.NextRecord()] {
    inner_->Upload(from, nullptr, decoder, to, e.inner());
    e.Pass(record);
  });
}

void DelayedDevice::Repeat(uint64_t key, absl::FunctionRef<void()> operations) {
  RefuseInRepeat("Repeat");
  const auto known = recordings_.find(key);
  if (known != recordings_.end()) {
    ++repetitions_;
    for (const Action& call : known->second) call();
    return;
  }
  recording_ = &recordings_[key];
  operations();
  recording_ = nullptr;
}

void DelayedDevice::Fill(float value, int64_t n, DeviceMemory* x) {
  Compute([=, this] { inner_->Fill(value, n, x); });
}

void DelayedDevice::MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                           const Epilogue& epilogue, DeviceMemory* c) {
  Compute([=, this, a = &a, b = &b] { inner_->MatMul(args, *a, *b, epilogue, c); });
}

void DelayedDevice::DenseGradients(int64_t rows, int64_t inputs, int64_t units,
                                   const DeviceMemory& x, const DeviceMemory& dy,
                                   DeviceMemory* kernel_gradient, DeviceMemory* bias_gradient) {
  Compute([=, this, x = &x, dy = &dy] {
    inner_->DenseGradients(rows, inputs, units, *x, *dy, kernel_gradient, bias_gradient);
  });
}

void DelayedDevice::BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                                 DeviceMemory* bias_gradient) {
  Compute([=, this, dy = &dy] { inner_->BiasGradient(rows, cols, *dy, bias_gradient); });
}

void DelayedDevice::MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x,
                                   float beta, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->MultiplySparse(a, width, *x, beta, y); });
}

void DelayedDevice::Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Axpy(alpha, n, *x, y); });
}

void DelayedDevice::Scale(float alpha, int64_t n, DeviceMemory* x) {
  Compute([=, this] { inner_->Scale(alpha, n, x); });
}

void DelayedDevice::Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) {
  Compute([=, this, x = &x] { inner_->Sum(n, *x, sum); });
}

void DelayedDevice::ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) {
  Compute([this, max_norm, all = std::vector<DeviceMemory*>(gradients.begin(), gradients.end())] {
    inner_->ClipByGlobalNorm(max_norm, all);
  });
}

void DelayedDevice::AddFromPeer(Device* peer, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  RefuseInRepeat("AddFromPeer");
  auto* const other = static_cast<DelayedDevice*>(peer);
  other->RunUntil(other->AfterOperations());
  RunUntil(AfterOperations());
  inner_->AddFromPeer(other->inner_.get(), n, x, y);
}

void DelayedDevice::Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                           const DeviceMemory& filter, const Epilogue& epilogue, DeviceMemory* y) {
  Compute(
      [=, this, x = &x, filter = &filter] { inner_->Conv2D(geometry, *x, *filter, epilogue, y); });
}

void DelayedDevice::Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                                       const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, filter = &filter, dy = &dy] {
    inner_->Conv2DBackwardData(geometry, *filter, *dy, dx);
  });
}

void DelayedDevice::Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                                         const DeviceMemory& dy, DeviceMemory* dfilter) {
  Compute(
      [=, this, x = &x, dy = &dy] { inner_->Conv2DBackwardFilter(geometry, *x, *dy, dfilter); });
}

void DelayedDevice::MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->MaxPool(geometry, *x, y); });
}

void DelayedDevice::MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x,
                                    const DeviceMemory& y, const DeviceMemory& dy,
                                    DeviceMemory* dx) {
  Compute(
      [=, this, x = &x, y = &y, dy = &dy] { inner_->MaxPoolBackward(geometry, *x, *y, *dy, dx); });
}

void DelayedDevice::AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->AvgPool(geometry, *x, y); });
}

void DelayedDevice::AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                                    DeviceMemory* dx) {
  Compute([=, this, dy = &dy] { inner_->AvgPoolBackward(geometry, *dy, dx); });
}

void DelayedDevice::GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels,
                                      const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->GlobalAveragePool(rows, positions, channels, *x, y); });
}

void DelayedDevice::GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                              const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, dy = &dy] {
    inner_->GlobalAveragePoolBackward(rows, positions, channels, *dy, dx);
  });
}

void DelayedDevice::Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) {
  Compute([=, this, a = &a, b = &b] { inner_->Add(n, *a, *b, y); });
}

void DelayedDevice::Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b,
                             DeviceMemory* y) {
  Compute([=, this, a = &a, b = &b] { inner_->Multiply(n, *a, *b, y); });
}

void DelayedDevice::Activate(ActivationKind kind, int64_t n, const DeviceMemory& x,
                             DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Activate(kind, n, *x, y); });
}

void DelayedDevice::ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                     const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, y = &y, dy = &dy] { inner_->ActivateBackward(kind, n, *y, *dy, dx); });
}

void DelayedDevice::Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Gate(kind, n, *x, y); });
}

void DelayedDevice::GateBackward(GateKind kind, int64_t n, const DeviceMemory& x,
                                 const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, x = &x, dy = &dy] { inner_->GateBackward(kind, n, *x, *dy, dx); });
}

void DelayedDevice::SetSeed(uint64_t seed) {
  RefuseInRepeat("SetSeed");
  Compute([this, seed] { inner_->SetSeed(seed); });
}

void DelayedDevice::Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
                            DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Dropout(rate, stream, n, *x, y); });
}

void DelayedDevice::CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from,
                                int64_t from_columns, int64_t from_begin, DeviceMemory* to,
                                int64_t to_columns, int64_t to_begin) {
  Compute([=, this, from = &from] {
    inner_->CopyColumns(rows, columns, *from, from_columns, from_begin, to, to_columns, to_begin);
  });
}

void DelayedDevice::ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                              DeviceMemory* x) {
  Compute([=, this, factors = &factors] { inner_->ScaleRows(rows, columns, *factors, x); });
}

void DelayedDevice::AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                                 DeviceMemory* x) {
  Compute([=, this, v = &v] { inner_->AddRowVector(rows, columns, alpha, *v, x); });
}

void DelayedDevice::RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
                            const DeviceMemory& b, float beta, DeviceMemory* y) {
  Compute([=, this, a = &a, b = &b] { inner_->RowDots(rows, columns, alpha, *a, *b, beta, y); });
}

void DelayedDevice::AddScaledRows(int64_t rows, int64_t columns, float alpha,
                                  const DeviceMemory& factors, const DeviceMemory& x, float beta,
                                  DeviceMemory* y) {
  Compute([=, this, factors = &factors, x = &x] {
    inner_->AddScaledRows(rows, columns, alpha, *factors, *x, beta, y);
  });
}

void DelayedDevice::PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x,
                                 DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->PairwiseDots(geometry, *x, y); });
}

void DelayedDevice::PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                                         const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, x = &x, dy = &dy] { inner_->PairwiseDotsBackward(geometry, *x, *dy, dx); });
}

void DelayedDevice::Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                              DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Transpose(geometry, *x, y); });
}

void DelayedDevice::InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x,
                                      DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->InverseSquareRoot(n, epsilon, *x, y); });
}

void DelayedDevice::Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->Softmax(rows, columns, *x, y); });
}

void DelayedDevice::SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y,
                                    const DeviceMemory& dy, DeviceMemory* dx) {
  Compute([=, this, y = &y, dy = &dy] { inner_->SoftmaxBackward(rows, columns, *y, *dy, dx); });
}

void DelayedDevice::BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                              const DeviceMemory* gamma, const DeviceMemory* beta,
                              DeviceMemory* mean, DeviceMemory* variance, DeviceMemory* y) {
  Compute([=, this, x = &x] { inner_->BatchNorm(geometry, *x, gamma, beta, mean, variance, y); });
}

void DelayedDevice::BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                      const DeviceMemory* gamma, const DeviceMemory& mean,
                                      const DeviceMemory& variance, const DeviceMemory& dy,
                                      DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) {
  Compute([=, this, x = &x, mean = &mean, variance = &variance, dy = &dy] {
    inner_->BatchNormBackward(geometry, *x, gamma, *mean, *variance, *dy, dgamma, dbeta, dx);
  });
}

void DelayedDevice::BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                       const DeviceMemory* gamma, const DeviceMemory* beta,
                                       const DeviceMemory& mean, const DeviceMemory& variance,
                                       DeviceMemory* y) {
  Compute([=, this, x = &x, mean = &mean, variance = &variance] {
    inner_->BatchNormInference(geometry, *x, gamma, beta, *mean, *variance, y);
  });
}

void DelayedDevice::LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                              const DeviceMemory* gamma, const DeviceMemory* beta,
                              DeviceMemory* mean, DeviceMemory* inverse_deviation,
                              DeviceMemory* y) {
  Compute([=, this, x = &x] {
    inner_->LayerNorm(geometry, *x, gamma, beta, mean, inverse_deviation, y);
  });
}

void DelayedDevice::LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                                      const DeviceMemory* gamma, const DeviceMemory& mean,
                                      const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                                      DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) {
  Compute([=, this, x = &x, mean = &mean, inverse = &inverse_deviation, dy = &dy] {
    inner_->LayerNormBackward(geometry, *x, gamma, *mean, *inverse, *dy, dgamma, dbeta, dx);
  });
}

void DelayedDevice::SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight,
                                        const DeviceMemory& scores, const DeviceMemory& labels,
                                        DeviceMemory* losses, DeviceMemory* dscores) {
  Compute([=, this, scores = &scores, labels = &labels] {
    inner_->SoftmaxCrossEntropy(rows, classes, weight, *scores, *labels, losses, dscores);
  });
}

void DelayedDevice::SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                                        const DeviceMemory& labels, DeviceMemory* losses,
                                        DeviceMemory* dscores) {
  Compute([=, this, scores = &scores, labels = &labels] {
    inner_->SigmoidCrossEntropy(rows, weight, *scores, *labels, losses, dscores);
  });
}

void DelayedDevice::MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                                     const DeviceMemory& targets, DeviceMemory* losses,
                                     DeviceMemory* dscores) {
  Compute([=, this, scores = &scores, targets = &targets] {
    inner_->MeanSquaredError(rows, weight, *scores, *targets, losses, dscores);
  });
}

void DelayedDevice::HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                              const DeviceMemory& targets, DeviceMemory* losses,
                              DeviceMemory* dscores) {
  Compute([=, this, scores = &scores, targets = &targets] {
    inner_->HuberLoss(rows, delta, weight, *scores, *targets, losses, dscores);
  });
}

}  // namespace keelson
