// A chief that runs with fake servers, for tests that play the worker and the evaluator.
#ifndef KEELSON_CHIEF_LIFECYCLE_CHIEF_RUN_TESTING_H_
#define KEELSON_CHIEF_LIFECYCLE_CHIEF_RUN_TESTING_H_

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "chief/lifecycle/chief.h"
#include "chief/servers/fake_parameter_server.h"
#include "gtest/gtest.h"

namespace keelson {

inline constexpr Task kWorker = {Role::kWorker, 0};
inline constexpr Task kEvaluator = {Role::kEvaluator, 0};

v1::RequestHeader HeaderOf(Task task);

// With the tickets that it still holds, none of them done.
v1::RegisterResponse Join(ChiefService* chief, Task task,
                          const std::vector<v1::AcquireWorkResponse>& held = {});

void Leave(ChiefService* chief, Task task);

v1::JobStatus StatusOf(ChiefService* chief);

inline void AwaitPhase(ChiefService* chief, v1::JobPhase phase) {
  while (StatusOf(chief).phase() != phase) std::this_thread::yield();
}

// Without work when there is none for a moment, as while the first snapshot is written.
v1::AcquireWorkResponse Acquire(ChiefService* chief, const v1::WorkerProgress& progress);

// Waits for work.
v1::AcquireWorkResponse AwaitWork(ChiefService* chief);

v1::WorkerProgress Done(const v1::AcquireWorkResponse& lease, double loss = 0.5);

// Tells what is done, and asks for nothing.
void Report(ChiefService* chief, const v1::WorkerProgress& progress);

// A joined worker trains until the chief says that it is over, or `until` says so between two
// leases. Returns the last phase that it received.
v1::JobPhase Work(
    ChiefService* chief, const std::function<bool()>& until = [] { return false; });

// The same where the last snapshot cannot be written, so that workers are not told of the end.
inline void WorkToTheLastStep(ChiefService* chief) {
  Work(chief, [chief] {
    const v1::JobStatus job = StatusOf(chief);
    // Both are 0 before the chief has looked for what it goes on with.
    return job.max_steps() > 0 && job.step() == job.max_steps();
  });
}

class ChiefRunTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs a new chief on its own thread, as a new process would.
  void Start(const Clock* clock = Clock::Real());
  absl::Status Wait();
  // The chief ends without another snapshot.
  void Kill();
  // What the chief knows at this moment is known to the servers.
  void AwaitStored();
  ChiefService* service() { return chief_->service(); }
  // A whole job with one worker.
  void Complete();
  std::vector<int64_t> SnapshotSteps();
  CheckpointDirectory directory();
  // The step of the snapshot; nothing: initial values.
  std::optional<int64_t> LastRestore(int server) { return servers_[server].last_restore(); }
  nlohmann::json StatusFile();
  void AwaitStatusFile();

  ChiefOptions options_;
  FakeParameterServer servers_[2];
  std::optional<Task> hosts_[2];  // of the servers
  std::unique_ptr<StopSignal> stop_ = std::make_unique<StopSignal>();
  ManualClock clock_;
  std::unique_ptr<Chief> chief_;
  std::thread thread_;
  absl::Status status_;
  std::atomic<bool> ended_{false};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_CHIEF_RUN_TESTING_H_
