// The evaluator's connection to the chief: a membership with heartbeats, which bring the job's
// state, and reports of evaluations. A chief that is away changes nothing for the caller.
#ifndef KEELSON_EVALUATOR_CHIEF_LINK_H_
#define KEELSON_EVALUATOR_CHIEF_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/membership_client.h"
#include "core/cluster/membership_id.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// The state of the job, as far as it is known.
struct JobView {
  // The chief answered the newest call.
  bool reachable = false;
  v1::JobPhase phase = v1::JOB_PHASE_UNSPECIFIED;
  // The step of the final snapshot; known from the phase EVALUATING on.
  std::optional<int64_t> final_step;
  // Not OK: the link has ended. FAILED_PRECONDITION: the chief has given up, or has another
  // configuration. ALREADY_EXISTS: another process is this evaluator. Or what else the chief
  // answered.
  absl::Status error;
};

// View, Acknowledge and EndTraining are thread-safe; the rest belongs to the owner. A thread of its
// own makes all calls, so a long evaluation does not lose the lease. A membership that is over (the
// process was frozen, the network cut) is followed by another one.
class ChiefLink {
 public:
  struct Options {
    // `retry.give_up_after` is ignored: a chief may stay away for any time. So is `membership`.
    MembershipClient::Options membership;
    // Returns a random identity for a membership.
    std::function<MembershipId()> new_membership = RandomMembershipId;
    absl::Duration heartbeat_interval = absl::Milliseconds(250);
    // The interval of heartbeats after the end of training.
    absl::Duration closing_interval = absl::Milliseconds(200);
  };

  // Begins to register. Both outlive the link.
  ChiefLink(const Options& options, ChiefService* chief, const Clock* clock);
  // Calls Leave.
  ~ChiefLink();

  JobView View() const;

  // Reports an evaluation to the chief, at once or when it is back, and again after each
  // registration, since a restarted chief may not know it. Only the highest step counts.
  void Acknowledge(const EvaluationRecord& record);
  // Training has gone back to this step: an acknowledgement of a later one is forgotten.
  void ForgetAfter(int64_t step);

  // Asks the chief to end training early, for this reason (only displayed): now or as soon as it
  // trains, until it has accepted, and again after each registration. The request ends once
  // training is over, or the chief has refused it, which is logged. The first reason counts.
  void EndTraining(const std::string& reason);

  // Ends the thread, and leaves if the chief is there. Repeating it does nothing. The view stays.
  void Leave();

 private:
  void Loop();
  // Makes all calls that are due. ABORTED: the chief does not know this member.
  absl::Status Talk();
  void BeginMembership();
  absl::Status Register();
  absl::Status SendAcknowledgement();
  absl::Status SendHeartbeat();
  absl::Status SendEndOfTraining();
  // Gets the final step, once there is one.
  absl::Status TakePhase(v1::JobPhase phase);
  void SetUnreachable();
  void End(const absl::Status& error);
  void Pause();

  const Options options_;
  ChiefService* const chief_;
  const Clock* const clock_;
  StopSignal left_;
  // Used by the thread, and by Leave after its end.
  std::unique_ptr<MembershipClient> membership_;
  bool registered_ = false;
  int64_t registrations_ = 0;

  mutable Mutex mu_;
  CondVar changed_;
  JobView view_ ABSL_GUARDED_BY(mu_);
  // The newest acknowledgement; the header is empty.
  v1::AcknowledgeEvaluationRequest newest_ ABSL_GUARDED_BY(mu_);
  bool unsent_ ABSL_GUARDED_BY(mu_) = false;
  // The reason to end training; empty: there is none.
  std::string end_reason_ ABSL_GUARDED_BY(mu_);
  bool end_unsent_ ABSL_GUARDED_BY(mu_) = false;
  bool urgent_ ABSL_GUARDED_BY(mu_) = false;

  Thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_CHIEF_LINK_H_
