// The state of the job: who takes part, what work is out, how far training is. The one place that
// decides; knows neither messages nor transport.
#ifndef KEELSON_CHIEF_COORDINATOR_H_
#define KEELSON_CHIEF_COORDINATOR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/loss_curve.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/cluster/membership.h"
#include "core/cluster/placement.h"
#include "core/cluster/work_ledger.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// See JobPhase in chief_service.proto.
enum class JobPhase { kWaitingForServers, kTraining, kFinishing, kEvaluating, kDone, kFailed };

// Where the variables live.
struct ModelLocation {
  Placement placement;
  std::vector<std::string> ps_addresses;  // by shard
};

// What a worker says of its work since the last time.
struct WorkerReport {
  struct LeaseProgress {
    uint64_t lease_id = 0;
    int64_t completed = 0;
  };
  struct StepLoss {
    int64_t step = 0;
    double loss = 0;
  };
  std::vector<LeaseProgress> leases;
  std::vector<StepLoss> losses;  // of each of the steps
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;
  int64_t non_finite_losses = 0;
  int64_t staleness_sum = 0;
  int64_t staleness_max = 0;
  double pull_seconds = 0;
  double input_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
  int64_t push_retries = 0;
  double credit_wait_seconds = 0;
  int64_t bytes_pushed = 0;
  int64_t bytes_pulled = 0;

  // Adds the sums; the lists stay.
  void AddSums(const WorkerReport& other);
};

// Thread-safe.
class Coordinator {
 public:
  struct Options {
    uint64_t config_hash = 0;
    // A member that has not been heard of for so long is lost.
    absl::Duration lease = absl::Seconds(10);
    // Work is leased for about this long at the worker's newest speed.
    absl::Duration work_per_lease = absl::Milliseconds(500);
    int64_t max_tickets_per_lease = 64;
    // Steps between two points of the loss curve.
    int64_t loss_interval = 100;
  };

  // Means over the newest reporting interval.
  struct Figures {
    double loss = 0;
    double steps_per_second = 0;
    double examples_per_second = 0;
    double staleness = 0;
    // Payload of gradients and values, over all workers.
    double pushed_bytes_per_second = 0;
    double pulled_bytes_per_second = 0;
    // Of a step: how long its messages were held back because the servers allowed no more.
    double credit_wait_seconds = 0;
    // Of a step: where the worker's loop spent its time.
    double input_seconds = 0;
    double pull_seconds = 0;
    double compute_seconds = 0;
    double push_seconds = 0;
  };
  struct Status {
    JobPhase phase = JobPhase::kWaitingForServers;
    std::string error;
    int64_t step = 0;
    int64_t max_steps = 0;
    double epoch = 0;
    int64_t snapshot_step = 0;
    // Sums since the start of this process.
    WorkerReport totals;
    Figures newest;
    std::vector<Member> members;
    int64_t evaluated_step = -1;
    std::map<std::string, double> evaluation;
  };

  Coordinator(const Options& options, const Clock* clock);

  // ---- What members ask for.

  // FAILED_PRECONDITION: another configuration. ALREADY_EXISTS, ABORTED: see Membership.
  absl::Status Register(Task task, uint64_t incarnation, uint64_t config_hash, std::string peer);

  // DEADLINE_EXCEEDED: not known within `max_wait`. ABORTED: not a member. FAILED_PRECONDITION:
  // the job has failed; the text has the reason.
  absl::StatusOr<ModelLocation> WaitForModel(Task task, uint64_t incarnation,
                                             absl::Duration max_wait);

  // ABORTED: the lease is lost and the work given back.
  absl::Status Heartbeat(Task task, uint64_t incarnation, const WorkerReport& report);

  // Nothing: no work within `max_wait`, or none left; see phase(). ABORTED as in Heartbeat.
  // A `sequence` that is not 0 rises with each new request of an incarnation. A request that comes
  // again gets the lease that the first one was granted, and its sums are not counted again; one
  // that has been overtaken by a newer gets nothing. So no work is leased to nobody.
  absl::StatusOr<std::optional<WorkLease>> AcquireWork(Task task, uint64_t incarnation,
                                                       const WorkerReport& report,
                                                       absl::Duration max_wait,
                                                       uint64_t sequence = 0);

  // ABORTED: not a member.
  absl::Status Leave(Task task, uint64_t incarnation, const WorkerReport& report);

  void AcknowledgeEvaluation(int64_t step, const std::map<std::string, double>& metrics);

  // ---- What the chief does.

  // Begins to hand out work.
  void StartTraining(ModelLocation model, WorkLedger ledger);
  void SetPhase(JobPhase phase);
  void SetSnapshotStep(int64_t step);
  void SetFigures(const Figures& newest);
  // Ends the job for everybody with this reason.
  void Fail(const absl::Status& error);

  // Loses the members whose lease has passed and takes their work back.
  void ExpireLeases();

  // Waits until `step` steps are completed, or a loss is reported that is not finite, or `until` on
  // the clock's monotonic time, or `stop`; looks at `stop` and the clock at least every 100 ms of
  // real time. Returns completed steps. Call after StartTraining.
  int64_t WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop);

  // Waits for an acknowledgement of `step`. False: not within `timeout`, or `stop` was raised.
  bool WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop);

  // Waits until no member is alive. False: not within `timeout`.
  bool WaitUntilAlone(absl::Duration timeout);

  // The next point of the loss curve; nothing: not yet. See LossCurve.
  std::optional<LossCurve::Point> TakeLossPoint();
  std::optional<LossCurve::Point> TakeLastLossPoint();

  // For a snapshot: the books of the work, with the configuration's hash.
  v1::JobState LedgerState() const;

  // ---- What anyone may look at.

  Status GetStatus() const;
  JobPhase phase() const;
  bool AnyAlive(Role role) const;
  absl::Duration lease() const { return options_.lease; }

 private:
  // How fast a worker has been, for the size of its next lease.
  struct Pace {
    absl::Duration granted_at;
    int64_t tickets = 0;
  };
  // What an incarnation has asked for: its newest request, and the lease that answered `granted`.
  struct Requests {
    uint64_t newest = 0;
    uint64_t granted = 0;
    std::optional<WorkLease> lease;
  };

  absl::Status AcceptReport(Task task, uint64_t incarnation, const WorkerReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<WorkLease> GrantLease(uint64_t incarnation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t TicketsFor(uint64_t incarnation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBackWork(const Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool EveryoneLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One wait of at most 100 ms, and not beyond `until`.
  void WaitBriefly(absl::Duration until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Clock* const clock_;

  mutable Mutex mu_;
  CondVar changed_;
  Membership membership_ ABSL_GUARDED_BY(mu_);
  std::optional<ModelLocation> model_ ABSL_GUARDED_BY(mu_);
  std::optional<WorkLedger> ledger_ ABSL_GUARDED_BY(mu_);
  std::optional<LossCurve> losses_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Pace> paces_ ABSL_GUARDED_BY(mu_);
  // By incarnation; kept when it is lost, so that its late requests are known as such.
  std::map<uint64_t, Requests> requests_ ABSL_GUARDED_BY(mu_);
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATOR_H_
