// Makes a task a member of the job: registers it with the chief, and retries as long as that is
// sensible.
#ifndef KEELSON_CORE_CLIENT_SERVICES_MEMBERSHIP_CLIENT_H_
#define KEELSON_CORE_CLIENT_SERVICES_MEMBERSHIP_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/retry.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"

namespace keelson {

// One membership. Header may be called from any thread; Register
// by one at a time.
class MembershipClient {
 public:
  struct Options {
    Task self;
    MembershipId membership;
    uint64_t config_hash = 0;
    std::string peer;  // "host:pid"
    // The task's device, only displayed; empty: none.
    std::string device;
    // RegisterRequest.step_bound, in whole seconds; zero: none.
    absl::Duration step_bound;
    // Called before each request to register, whose errors are treated alike; null: nothing. A
    // script says there what the job is.
    std::function<absl::Status()> prepare = nullptr;
    // Retries while the chief is away.
    RetryOptions retry;
    // Retries while another incarnation holds the task. The holder may be the caller's dead
    // predecessor, so a new process retries for this long beyond the lease (which the chief tells),
    // anew when the chief was away meanwhile: a restarted one counts the lease from its own start.
    // One that was a member before was replaced, unless the chief was restarted and takes it for a
    // new one.
    absl::Duration held_pause = absl::Milliseconds(100);
    absl::Duration held_margin = absl::Seconds(5);
    absl::Duration replaced_patience = absl::Seconds(3);
  };

  // All outlive the client. `stop` ends every wait.
  MembershipClient(Options options, ChiefService* chief, const Clock* clock,
                   const StopSignal* stop);

  // Has the header carry this epoch (GetModelResponse) from now on. Any thread.
  void NoteEpoch(uint64_t member_epoch) { member_epoch_ = member_epoch; }
  // The header of every request.
  v1::RequestHeader Header() const;

  // Registers; also again, with the leases it holds, at a chief that does not know this member.
  // ABORTED: this membership is over; its incarnation is refused for good. ALREADY_EXISTS: a live
  // process holds the task; the text names it. FAILED_PRECONDITION: another configuration.
  // UNAVAILABLE, DEADLINE_EXCEEDED: the chief was away for longer than `retry` allows. CANCELLED:
  // stopped.
  absl::StatusOr<v1::RegisterResponse> Register(const std::vector<v1::HeldLease>& held = {});

 private:
  absl::StatusOr<absl::Duration> PatienceWithHolder();

  const Options options_;
  ChiefService* const chief_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  std::atomic<uint64_t> member_epoch_{0};
  // Used by Register alone.
  bool registered_before_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_MEMBERSHIP_CLIENT_H_
