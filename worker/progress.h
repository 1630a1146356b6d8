// What a worker has done since it last told the chief.
#ifndef KEELSON_WORKER_PROGRESS_H_
#define KEELSON_WORKER_PROGRESS_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/data/ticket.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// One finished step, its gradient acknowledged by the servers.
struct FinishedStep {
  Ticket ticket;
  double loss = 0;
  int64_t staleness = 0;
  int64_t push_retries = 0;
  int64_t bytes_pushed = 0;
  int64_t bytes_pulled = 0;
  absl::Duration pull, input, compute, push;
  // Of `push`: the servers allowed no more messages in flight.
  absl::Duration waited_for_credit;
};

// The books between the training loop, which finishes steps, and whoever reports to the chief.
// Thread-safe.
class Progress {
 public:
  // A lease of `tickets` tickets was granted.
  void AddLease(uint64_t lease_id, int64_t tickets);

  // The chief has taken all leases back: their tickets are others' now.
  void DropLeases();

  // Whether the ticket is still this worker's to work on.
  bool IsValid(const Ticket& ticket) const;

  void Finish(const FinishedStep& step);

  // A loss that is not a finite number; the step was not pushed.
  void AddNonFiniteLoss();

  // What is new; begins a new report. Give it back by Restore when it was not answered, so that
  // nothing is lost. It may have been delivered all the same, only the answer was lost: the
  // progress of leases may be told any number of times, but sums are then counted twice at the
  // chief. They are figures for people; no decision hangs on them.
  v1::WorkerProgress Take();
  void Restore(const v1::WorkerProgress& undelivered);

  // Waits until there is something to tell at once (a lease is used up, a loss is not finite), or
  // Wake, or `timeout`.
  void WaitForUrgent(absl::Duration timeout);
  void Wake();

 private:
  struct Lease {
    int64_t tickets = 0;
    int64_t completed = 0;
    int64_t reported = 0;
  };

  mutable Mutex mu_;
  CondVar changed_;
  // Held and not reported as completed.
  std::map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
  // Completed steps of leases that are held no more, whose report was not answered.
  std::map<uint64_t, int64_t> undelivered_ ABSL_GUARDED_BY(mu_);
  v1::WorkerProgress sums_ ABSL_GUARDED_BY(mu_);
  bool urgent_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_PROGRESS_H_
