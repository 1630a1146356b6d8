// The leases that a worker holds, and the work that it has done since its last report to the chief.
#ifndef KEELSON_WORKER_PROGRESS_H_
#define KEELSON_WORKER_PROGRESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/data/ticket.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/figures.pb.h"
#include "worker/worker_metrics.h"

namespace keelson {

// One finished step, its gradient acknowledged by the servers.
struct FinishedStep {
  Ticket ticket;
  // Nothing: it was left out before there was a loss.
  std::optional<double> loss = std::nullopt;
  int64_t staleness = 0;
  absl::Duration pull, input, compute, push;
  // What the step adds to other figures; those that follow from the fields above are not set.
  v1::WorkerFigures figures;
};

// Connects the training loop, which finishes steps, with the threads that report to the chief.
//
// A lease is held from AddLease until it is finished and the chief has persisted that
// (Acknowledge): a restarted chief may have persisted less than it had answered, and its worker
// then reports the leases again (Held). Thread-safe.
class Progress {
 public:
  // A lease was granted; its tickets are done in order.
  void AddLease(uint64_t lease_id, std::vector<Ticket> tickets);

  // The chief has closed the lease at this ticket, which goes to another worker with those after
  // it. The tickets before it still count.
  void Drop(const Ticket& ticket);

  // A server has refused the push of this ticket of a synchronous step: as Drop, and the chief is
  // told, which may not know that the ticket is not done.
  void Refuse(const Ticket& ticket);

  // Whether the ticket still belongs to this worker.
  bool IsValid(const Ticket& ticket) const;

  // A step whose lease is not held counts in the sums only.
  void Finish(const FinishedStep& step);

  // A loss that is not a finite number; the step was not pushed.
  void AddNonFiniteLoss();

  // A number of the script's own, told once. False: there are too many that were not told yet.
  bool Log(const std::string& name, int64_t step, double value);

  // Returns the progress since the last report. Call Acknowledge when the chief has answered, else
  // Restore, so that nothing is lost. If only the answer was lost, the sums count twice at the
  // chief, which is tolerable: they are only displayed. The progress of leases may be reported any
  // number of times.
  v1::WorkerProgress Take();
  void Restore(const v1::WorkerProgress& undelivered);
  // `state_versions` are those of the answer.
  void Acknowledge(const v1::WorkerProgress& delivered, const v1::StateVersions& state_versions);

  // The leases for RegisterRequest.leases.
  std::vector<v1::HeldLease> Held() const;
  // A chief to which `held` was reported keeps some of these leases. All others are dropped, also
  // those added meanwhile. Leases reported as finished are kept until that is persisted, for the
  // chief may be restarted once more.
  void Keep(const std::vector<v1::HeldLease>& held, const v1::RegisterResponse& answer);

  // The membership is over: no lease is held. The sums stay.
  void DropLeases();

  // Totals since this worker's start.
  WorkerTotals totals() const;

  // Waits until something must be reported at once (a lease is used up, a loss is not finite),
  // until Wake, or for `timeout`.
  void WaitForUrgent(absl::Duration timeout);
  // Waits until no ticket is left to be done, until something else must be reported at once, until
  // Wake, or for `timeout`. The caller reports next, so that a lease that is used up meanwhile
  // wakes it alone, and not who is in WaitForUrgent.
  void WaitUntilDone(absl::Duration timeout);
  void Wake();

 private:
  struct Lease {
    std::vector<Ticket> tickets;
    int64_t completed = 0;
    int64_t reported = 0;

    bool finished() const { return completed == static_cast<int64_t>(tickets.size()); }
  };
  struct AcknowledgedLease {
    uint64_t id = 0;
    Lease lease;
  };

  void DropLocked(const Ticket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AnyLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetStored(uint64_t stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A lease has no ticket left that is to be done.
  void NoteUsedUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetUrgent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  CondVar changed_;  // urgent_
  CondVar done_;     // for WaitUntilDone
  // Those that are not in acknowledged_.
  std::map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
  // Finished leases that the chief has acknowledged, by the version of the job state that has them.
  // A fast job has thousands, which no report looks at.
  std::multimap<uint64_t, AcknowledgedLease> acknowledged_ ABSL_GUARDED_BY(mu_);
  // Threads in WaitUntilDone.
  int waiting_until_done_ ABSL_GUARDED_BY(mu_) = 0;
  // Without leases.
  v1::WorkerProgress unreported_ ABSL_GUARDED_BY(mu_);
  WorkerTotals totals_ ABSL_GUARDED_BY(mu_);
  bool urgent_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_PROGRESS_H_
