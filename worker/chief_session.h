// A worker's session with the chief: it joins, sends heartbeats, fetches work, and leaves.
#ifndef KEELSON_WORKER_CHIEF_SESSION_H_
#define KEELSON_WORKER_CHIEF_SESSION_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/membership_client.h"
#include "core/client/services/retry.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"
#include "core/data/stream/stream_dataset.h"
#include "core/data/ticket.h"
#include "worker/progress.h"
#include "worker/server_news.h"

namespace keelson {

// One membership. Joins in Join; then Next (on the batcher's thread), Admit and Confirm (on the
// trainer's), the heartbeats (on a thread of its own) and Leave may run side by side. Calls to a
// chief that is away are repeated as `retry` says. With a chief that was restarted and does not
// know this worker, the session registers again with the leases that it holds; work on those that
// the chief keeps continues.
//
// The session ends for good when the chief says so. Then every method returns that error:
// ABORTED: the membership is over (its lease was lost); a new one may be begun. ALREADY_EXISTS: a
// live process has replaced this one. FAILED_PRECONDITION: another configuration, or the chief has
// given up; the text has its reason. Each returns CANCELLED when it is stopped, UNAVAILABLE or
// DEADLINE_EXCEEDED when the chief was away for too long.
class ChiefSession : public TicketSource {
 public:
  struct Options {
    Task self;
    MembershipId membership;
    uint64_t config_hash = 0;
    std::string peer;
    std::string device;                     // only displayed
    absl::Duration step_bound;              // RegisterRequest
    std::function<absl::Status()> prepare;  // MembershipClient::Options
    RetryOptions retry;
    // Between two heartbeats, unless the chief wants them less often.
    absl::Duration heartbeat_interval = absl::Milliseconds(250);
    // Of a stream: learns which files have the records of the work. Outlives the session.
    StreamDataset* stream = nullptr;
  };

  // All outlive the session. `progress` holds no lease. `stop` ends every wait.
  ChiefSession(const Options& options, ChiefService* chief, Progress* progress, const Clock* clock,
               StopSignal* stop);
  ~ChiefSession() override;

  // Registers and begins to send heartbeats. While another incarnation holds this task, Join tries
  // again until that lease must have passed.
  absl::Status Join();

  // Waits until the servers hold the model.
  absl::StatusOr<v1::GetModelResponse> WaitForModel();

  // `watcher` gets the shards' addresses whenever the chief says other ones than with the model, on
  // any of the session's threads; see ServerNews::Watch.
  void WatchServers(ServerNews::Watcher watcher) { servers_.Watch(std::move(watcher)); }

  // The next ticket; nullopt when training is over.
  absl::StatusOr<std::optional<Ticket>> Next() override;
  // The next one of the lease.
  std::optional<Ticket> Ready() override;
  bool has_ready() const override { return !tickets_.empty(); }

  // Whether the gradient of a contested ticket still counts. False also when the ticket's lease is
  // not held any more.
  absl::StatusOr<bool> Admit(const Ticket& ticket);

  // Has the chief end the training of the whole job early, for `reason`, one line.
  // FAILED_PRECONDITION: the job does not train. INVALID_ARGUMENT: the reason is no line of at most
  // 1000 bytes.
  absl::Status EndTraining(const std::string& reason);

  // Has the chief write a snapshot of the steps that are done, among them those that this worker
  // has reported; returns its step. A chief that is away is waited for. Errors of the call.
  absl::StatusOr<int64_t> SaveSnapshot();

  // Asks the chief whether this is still a member, after a server said that it is not.
  absl::Status Confirm();

  // The error with which the session ended; OK while it has not.
  absl::Status status() const;
  // The signal that is raised when the session ends, by Leave, or with `stop`.
  StopSignal* ended() { return &ended_; }

  // Delivers the last progress, leaves, ends the heartbeats. Not an error when the chief is gone.
  void Leave();

 private:
  // Calls until the chief answers, and registers again where it does not know this worker.
  absl::Status Call(absl::string_view what, absl::FunctionRef<absl::Status()> call);
  int64_t registrations() const;
  // Registers, unless that was done since there were `registrations` of them.
  absl::Status Register(int64_t registrations);
  void NoteRegistered(const std::vector<v1::HeldLease>& held, const v1::RegisterResponse& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until no thread is registering, so that an answer came either before or after a
  // registration.
  void AwaitRegistration() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::optional<Ticket>> AcquireLease();
  // Within a synchronous step the chief hardly has more work before this is done, so that one call
  // can report it and ask.
  void AwaitRoundDone();
  absl::Status Acquire(v1::AcquireWorkResponse* response);
  // False: the answer may be of a chief that is gone, for this worker has registered meanwhile.
  bool Accept(int64_t registrations, const v1::WorkerProgress& report,
              const v1::AcquireWorkResponse& response);
  void HeartbeatLoop();
  // `next_after`: HeartbeatResponse.
  absl::Status SendHeartbeat(absl::Duration* next_after);
  absl::Status ChiefGaveUp();
  // Ends the session, if it has not ended, and returns the error with which it did.
  absl::Status End(const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // " after 3s", if the chief did not answer heartbeats before.
  std::string TakeAbsence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUnreachable(const absl::Status& status);

  const Options options_;
  ChiefService* const chief_;
  Progress* const progress_;
  const Clock* const clock_;
  StopSignal ended_;
  MembershipClient membership_;

  // Used by Next's thread alone.
  std::deque<Ticket> tickets_;
  bool in_round_ = false;  // the newest ticket is one of a synchronous step
  uint64_t sequence_ = 0;  // of the newest request for work

  ServerNews servers_;

  mutable Mutex mu_;
  CondVar registered_;
  bool registering_ ABSL_GUARDED_BY(mu_) = false;
  // Answers to requests from before the newest registration may be those of a chief that is gone.
  int64_t registrations_ ABSL_GUARDED_BY(mu_) = 0;
  // Since when heartbeats are not answered.
  std::optional<absl::Duration> unreachable_since_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  Thread heartbeats_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_CHIEF_SESSION_H_
