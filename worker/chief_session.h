// A worker's relation to the chief: it joins, stays in touch, fetches work, and leaves.
#ifndef KEELSON_WORKER_CHIEF_SESSION_H_
#define KEELSON_WORKER_CHIEF_SESSION_H_

#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/chief_service.h"
#include "core/client/membership_client.h"
#include "core/client/retry.h"
#include "core/cluster/task.h"
#include "core/data/ticket.h"
#include "worker/progress.h"

namespace keelson {

// Joins in Join; then Next (on the batcher's thread), the heartbeats (on a thread of its own) and
// Leave may run side by side. A chief that is away is waited for, as `retry` says.
class ChiefSession : public TicketSource {
 public:
  struct Options {
    Task self;
    uint64_t incarnation = 0;
    uint64_t config_hash = 0;
    std::string peer;
    RetryOptions retry;
    absl::Duration heartbeat_interval = absl::Seconds(1);
  };

  // All outlive the session. `stop` ends every wait.
  ChiefSession(const Options& options, ChiefService* chief, Progress* progress, const Clock* clock,
               const StopSignal* stop);
  ~ChiefSession() override;

  // Registers and begins to send heartbeats. While another incarnation holds this task, tries
  // again until its lease must have passed. FAILED_PRECONDITION: another configuration.
  // ALREADY_EXISTS: the task is held by a live process. CANCELLED: stopped.
  absl::Status Join();

  // Waits until the servers hold the model.
  absl::StatusOr<v1::GetModelResponse> WaitForModel();

  // The next ticket; nullopt when training is over. Registers again when the chief has lost or
  // forgotten this worker. FAILED_PRECONDITION: the chief has given up; the text has its reason.
  absl::StatusOr<std::optional<Ticket>> Next() override;

  // Delivers the last progress, leaves, ends the heartbeats. Not an error when the chief is gone.
  void Leave();

 private:
  absl::Status Register();
  absl::Status Rejoin();
  absl::StatusOr<std::optional<Ticket>> AcquireLease();
  absl::Status Acquire(v1::AcquireWorkResponse* response);
  void HeartbeatLoop();
  void SendHeartbeat();
  absl::Status ChiefGaveUp();
  // Not OK once a heartbeat was told that the job has failed.
  absl::Status JobState() const;

  const Options options_;
  ChiefService* const chief_;
  Progress* const progress_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  MembershipClient membership_;

  // Used by Next's thread alone.
  std::deque<Ticket> tickets_;
  uint64_t sequence_ = 0;  // of the newest request for work

  mutable Mutex mu_;
  // Memberships begun. An ABORTED that was sent for an earlier one says nothing of this one.
  int64_t registrations_ ABSL_GUARDED_BY(mu_) = 0;
  // The chief's reason, once a heartbeat has told that the job has failed.
  std::optional<std::string> failure_ ABSL_GUARDED_BY(mu_);
  StopSignal left_;
  std::thread heartbeats_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_CHIEF_SESSION_H_
