// The environment of a worker in tests: records, servers, a fixture.
#ifndef KEELSON_WORKER_WORKER_TESTING_H_
#define KEELSON_WORKER_WORKER_TESTING_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker/fake_chief.h"
#include "worker/worker.h"

namespace keelson {

// Each reading of this clock advances it by two seconds.
class HurryingClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + Monotonic(); }
  absl::Duration Monotonic() const override { return absl::Seconds(2) * ++looks_; }

 private:
  mutable std::atomic<int64_t> looks_ = 0;
};

// 32 examples of 4 features; the class is the larger half.
class FourFeatures : public Dataset {
 public:
  int64_t num_records() const override { return 32; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;
};

// The calls that the worker made of its client.
struct Exchanges {
  std::vector<uint64_t> incarnations;  // of the clients
  uint64_t member_epoch = 0;           // of the newest client
  std::vector<int64_t> steps;
  std::vector<Aggregation> aggregations;
  std::vector<double> norms;
  std::vector<std::vector<size_t>> offered;  // variables, by step
  std::vector<std::vector<size_t>> omitted;  // likewise
  std::vector<size_t> told;                  // by NextValues
  int pulls = 0;
  std::vector<int64_t> pulled_for;   // by pull
  std::vector<int64_t> asked_ahead;  // PullAhead
  int drains = 0;                    // with a step under way
  // Pushes with an aggregation that the servers refuse, counted from 1.
  std::set<size_t> refused;
};

// Servers that apply plain gradient descent. With depth 2 a step is applied when the next one ends,
// or in Drain. A step with an Aggregation is not applied. A wire memory is float32; its values are
// NaN where the worker must not read.
class FakeClient : public ParameterClient {
 public:
  FakeClient(const std::vector<VariableSpec>& variables, float initial, size_t depth,
             std::optional<ParameterMemory> memory, Exchanges* exchanges);

  absl::Span<const absl::Span<float>> values() const override { return Elements(values_); }
  absl::Span<const absl::Span<float>> gradients() const override { return Elements(gradients_); }
  size_t value_set() const override { return value_set_; }
  size_t gradient_set() const override { return gradient_set_; }
  size_t depth() const override { return depth_; }
  absl::Status PullFor(int64_t step, StillWanted wanted) override;
  void PullAhead(int64_t step) override;
  void Begin(int64_t step, std::optional<Aggregation> aggregation) override;
  void Offer(size_t variable) override;
  void Omit(size_t variable) override;
  absl::StatusOr<std::optional<size_t>> NextValues() override;
  absl::StatusOr<std::optional<PushResult>> End() override;
  absl::StatusOr<std::optional<PushResult>> Drain() override;
  void SetServers(std::vector<BulkServer> servers) override {
    if (on_servers != nullptr) on_servers(servers);
  }

  std::function<absl::Status()> on_push;
  std::function<void(const std::vector<BulkServer>&)> on_servers;

 private:
  absl::Span<const absl::Span<float>> Elements(const std::vector<absl::Span<float>>& arrays) const;
  std::vector<float> GradientOf(size_t variable) const;
  void Send(size_t variable);
  void SendAll() {
    for (size_t v = 0; v < values_.size(); ++v) Send(v);
  }
  double Norm() const;
  void Apply();
  PushResult Result() const;

  const size_t depth_;
  const float initial_;
  Exchanges* const exchanges_;
  std::vector<Tensor> owned_;
  std::vector<absl::Span<float>> values_;
  std::vector<absl::Span<float>> gradients_;
  std::optional<WireMemory> wire_;
  size_t value_set_ = 0;
  size_t gradient_set_ = 0;
  bool pulled_ = false;
  std::optional<int64_t> ahead_;
  bool begun_ = false;
  bool applied_ = false;
  size_t untold_ = 0;
  std::map<size_t, std::vector<float>> offered_;
  std::optional<Aggregation> aggregation_;
  std::optional<PushResult> under_way_;
};

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override;
  absl::Status Run();

  WorkerOptions options_;
  std::vector<VariableSpec> variables_;
  FakeChief chief_;
  FourFeatures dataset_;
  std::unique_ptr<DeviceGroup> devices_;
  StopSignal stop_;
  Exchanges exchanges_;
  float initial_ = 0;
  static constexpr uint64_t kSecret = 0x5ec2e7;  // of all its memberships
  uint64_t next_incarnation_ = 9;
  const StopSignal* client_stop_ = nullptr;
  bool lent_ = false;
  bool wire_ = false;
  const Clock* clock_ = Clock::Real();
  absl::Status client_error_;
  std::function<absl::Status()> on_push_;
  std::function<void(const std::vector<BulkServer>&)> on_servers_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_TESTING_H_
