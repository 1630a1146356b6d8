// Workers of a job as its chief sees them: they register, send heartbeats, take work and report it
// as done, and compute nothing. Their calls share some connections and do not occupy threads.
#ifndef KEELSON_BENCH_CHIEF_SIMULATED_WORKERS_H_
#define KEELSON_BENCH_CHIEF_SIMULATED_WORKERS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/statistics.h"
#include "core/base/mutex.h"
#include "core/cluster/membership_id.h"
#include "core/rpc/credentials.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson::bench {

enum class CallKind { kRegister, kGetModel, kHeartbeat, kAcquireWork, kLeave, kGetJobStatus };
inline constexpr size_t kCallKinds = 6;
constexpr size_t IndexOf(CallKind kind) { return static_cast<size_t>(kind); }

// What has become of the calls of one kind.
struct CallCounts {
  int64_t wanted = 0;          // should have been made
  int64_t answered = 0;        // with OK
  int64_t failed = 0;          // with an error
  LatencyHistogram latencies;  // of those that were answered
};
using AllCounts = std::array<CallCounts, kCallKinds>;

// Thread-safe. The methods that begin calls return at once.
class SimulatedWorkers {
 public:
  struct Options {
    int workers = 1;
    int connections = 1;
    std::string chief_address;
    uint64_t config_hash = 0;
    std::string job_token;
  };

  explicit SimulatedWorkers(const Options& options);
  // Waits for the calls under way.
  ~SimulatedWorkers();

  int size() const { return static_cast<int>(workers_.size()); }

  // A new membership of worker `w`: registers and then asks for the model.
  void Join(int w);
  // The membership of worker `w` ends: with the call Leave, or without a word.
  void Leave(int w);
  void Vanish(int w);
  // These count as wanted but do nothing while the worker is no member, or its last call of this
  // kind is not answered yet.
  void Heartbeat(int w);
  // The longest time after which the chief wants the next heartbeat, as far as it has said.
  double wanted_heartbeat_seconds() const { return wanted_heartbeat_seconds_; }
  // Reports the lease before as done, and asks for the next one.
  void AcquireWork(int w);
  // By worker `w`'s connection; as many at a time as are wanted.
  void GetJobStatus(int w);

  // While it is true, a worker that has got an answer to AcquireWork asks again at once. It goes on
  // for those whose AcquireWork is under way.
  void AcquireWithoutPause(bool without_pause) { without_pause_ = without_pause; }

  // Workers that are members now.
  int members() const { return members_; }
  // Memberships that began so far.
  int64_t joined() const { return joined_; }
  // Waits until no call is under way. False: one was after `limit`.
  bool WaitUntilQuiet(absl::Duration limit);
  // The counts since the last call, and from now on from 0.
  AllCounts TakeCounts();
  // The newest job status; without one, JOB_PHASE_UNSPECIFIED and step 0.
  v1::JobStatus job_status() const;
  // The seconds between the first tickets of a step and of the step after it, as workers got them,
  // since the last call; of synchronous mode.
  std::vector<double> TakeRoundSeconds();
  // Calls that failed so far, by the name of their status. The log has the text of the first.
  std::map<std::string, int64_t> errors() const;

 private:
  struct Worker {
    v1::ChiefService::Stub* stub = nullptr;
    Mutex mu;
    // Zeros: no member, and no Register is under way.
    MembershipId membership ABSL_GUARDED_BY(mu);
    bool member ABSL_GUARDED_BY(mu) = false;
    uint64_t epoch ABSL_GUARDED_BY(mu) = 0;
    bool beating ABSL_GUARDED_BY(mu) = false;
    bool acquiring ABSL_GUARDED_BY(mu) = false;
    uint64_t sequence ABSL_GUARDED_BY(mu) = 0;
    v1::AcquireWorkResponse lease ABSL_GUARDED_BY(mu);
  };
  template <typename Request, typename Response>
  struct Call;

  v1::RequestHeader HeaderOf(int w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(workers_[w]->mu);
  template <typename Request, typename Response>
  std::unique_ptr<Call<Request, Response>> NewCall();
  // Notes the end of a call.
  void NoteEnd(CallKind kind, double started, const grpc::Status& status);
  void NoteWanted(CallKind kind);
  void NoteWantedHeartbeat(const v1::HeartbeatResponse& response);
  void NoteStep(int64_t step);

  void AskForModel(int w, MembershipId membership);
  void SendAcquire(int w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(workers_[w]->mu);
  void EndMembership(Worker* worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker->mu);

  const Options options_;
  const Claim claim_;
  std::vector<std::unique_ptr<v1::ChiefService::Stub>> stubs_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> without_pause_{false};
  std::atomic<double> wanted_heartbeat_seconds_ = 0;
  std::atomic<int> members_{0};
  std::atomic<int64_t> joined_{0};

  mutable Mutex mu_;
  CondVar quiet_;
  int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;
  AllCounts counts_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int64_t> errors_ ABSL_GUARDED_BY(mu_);
  v1::JobStatus job_status_ ABSL_GUARDED_BY(mu_);
  int64_t newest_step_ ABSL_GUARDED_BY(mu_) = -1;
  double newest_step_at_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<double> round_seconds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_SIMULATED_WORKERS_H_
