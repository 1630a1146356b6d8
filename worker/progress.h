// What a worker holds of the chief's work, and what it has done since it last told the chief.
#ifndef KEELSON_WORKER_PROGRESS_H_
#define KEELSON_WORKER_PROGRESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/data/ticket.h"
#include "keelson/v1/chief_service.pb.h"
#include "worker/worker_metrics.h"

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
//
// A lease is held from AddLease until it is finished and the chief has not only heard of that but
// stored it (Acknowledge): a chief that is restarted may remember less than it has answered, and is
// told again what its worker holds (Held). Thread-safe.
class Progress {
 public:
  // A lease was granted; its tickets are done in order.
  void AddLease(uint64_t lease_id, std::vector<Ticket> tickets);

  // The chief has closed the ticket's lease at this ticket: it goes to someone else, with those
  // that follow it in the lease. What was done of the lease before still counts.
  void Drop(const Ticket& ticket);

  // Whether the ticket is still this worker's to work on.
  bool IsValid(const Ticket& ticket) const;

  // A step whose lease is not held counts in the sums only.
  void Finish(const FinishedStep& step);

  // A loss that is not a finite number; the step was not pushed.
  void AddNonFiniteLoss();

  // What is new; begins a new report. It is followed by Acknowledge when it was answered, else by
  // Restore, so that nothing is lost. It may have been delivered all the same, only the answer was
  // lost: the progress of leases may be told any number of times, but sums are then counted twice
  // at the chief. They are figures for people; no decision hangs on them.
  v1::WorkerProgress Take();
  void Restore(const v1::WorkerProgress& undelivered);
  // `books`: of the answer.
  void Acknowledge(const v1::WorkerProgress& delivered, const v1::BookVersions& books);

  // What RegisterRequest.leases wants to know.
  std::vector<v1::HeldLease> Held() const;
  // A chief that was told `held` keeps only some of it. Everything else is dropped, also what was
  // added meanwhile. But what it was told to be finished is remembered until that is stored, for
  // the chief may be restarted once more.
  void Keep(const std::vector<v1::HeldLease>& held, const v1::RegisterResponse& answer);

  // The membership is over: no lease is held. The sums stay.
  void DropLeases();

  // Of the whole life of this worker.
  WorkerTotals totals() const;

  // Waits until there is something to tell at once (a lease is used up, a loss is not finite), or
  // Wake, or `timeout`.
  void WaitForUrgent(absl::Duration timeout);
  void Wake();

 private:
  struct Lease {
    std::vector<Ticket> tickets;
    int64_t completed = 0;
    int64_t reported = 0;
    // Finished, and the chief said so: the version of its books that has it.
    std::optional<uint64_t> booked_at;

    bool finished() const { return completed == static_cast<int64_t>(tickets.size()); }
  };

  void ForgetStored(uint64_t stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetUrgent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  CondVar changed_;
  std::map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
  v1::WorkerProgress sums_ ABSL_GUARDED_BY(mu_);
  WorkerTotals totals_ ABSL_GUARDED_BY(mu_);
  bool urgent_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_PROGRESS_H_
