// The books of the training work: which steps and records are handed out, to whom, and what is
// done.
//
// A ticket is one step and the records of its batch, as positions in the epoch's shuffled order.
// New tickets walk through the epochs in order; a batch never crosses the end of an epoch, the last
// one is smaller. Tickets are leased; those of a lost worker come back and go to the next one who
// asks. So each step is completed exactly once, and each record of an epoch once: at least once
// where a lost worker had trained on it without reporting.
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe. It keeps what is handed
// out and not done, and 8 bytes per lease that was taken back.
#ifndef KEELSON_CORE_CLUSTER_WORK_LEDGER_H_
#define KEELSON_CORE_CLUSTER_WORK_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

struct WorkOptions {
  int64_t max_steps = 0;    // >= 0
  int64_t num_records = 0;  // > 0
  int64_t batch_size = 0;   // > 0; may be greater than num_records
  // Leases are numbered from here. A random start tells the leases of a restarted chief from
  // those of its predecessor. Not 0, which means "no lease" on the wire.
  uint64_t first_lease_id = 1;
};

// Step `step` trains on positions [begin, end) of epoch `epoch`.
struct WorkTicket {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const WorkTicket&, const WorkTicket&) = default;
};

// Tickets in step order, to be completed in this order.
struct WorkLease {
  uint64_t id = 0;
  std::vector<WorkTicket> tickets;
};

class WorkLedger {
 public:
  // A job that starts at its first step.
  explicit WorkLedger(WorkOptions options);

  // Continues from a snapshot. Its unfinished ranges are handed out first; steps are numbered on
  // from `global_step`. A global_step of max_steps or more is a job that is done. An empty state is
  // a new job. What changed since the snapshot:
  //   batch_size   positions keep their meaning: goes on at the same place in the new size;
  //                unfinished ranges are cut to it.
  //   num_records  positions mean nothing any more: goes on at the beginning of the next epoch (of
  //                this one if it had not begun); unfinished ranges are dropped.
  //   max_steps    smaller: what no longer fits is not handed out.
  // DATA_LOSS: the state contradicts itself; the text starts with "_keelson/job" and the field.
  static absl::StatusOr<WorkLedger> FromState(const v1::JobState& state, WorkOptions options);

  // Where the job stands: leased tickets count as unfinished. `config_hash` is left to the caller.
  v1::JobState ToState() const;

  // Leases up to `max_tickets` tickets to `worker` (its incarnation): first those that came back,
  // then new ones. Nothing when AllHandedOut() or max_tickets is not positive.
  std::optional<WorkLease> Acquire(uint64_t worker, int64_t max_tickets);

  // The first `completed` tickets of the lease are done. Repeating it, or reporting less
  // than before, is harmless. A completed lease is forgotten.
  // ABORTED: the lease is not the worker's: taken back by Release, another worker's, or never
  // granted here. INVALID_ARGUMENT: `completed` is negative or more than the lease has.
  absl::Status Complete(uint64_t worker, uint64_t lease_id, int64_t completed);

  // Takes back all leases of `worker`; its unfinished tickets will be handed out again. Returns
  // how many those are.
  int64_t Release(uint64_t worker);

  int64_t completed_steps() const { return completed_steps_; }
  // Nothing to hand out now; what is leased may still come back.
  bool AllHandedOut() const { return returned_.empty() && next_step_ >= options_.max_steps; }
  bool Done() const { return completed_steps_ >= options_.max_steps; }
  // Records done, as a multiple of the records of an epoch.
  double epochs_completed() const;
  const WorkOptions& options() const { return options_; }

  // Steps of `epochs` whole epochs.
  static int64_t StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size);

 private:
  struct Lease {
    uint64_t worker = 0;
    int64_t completed = 0;
    std::vector<WorkTicket> tickets;
  };

  void AdoptCursor(const v1::JobState& state);
  void AdoptUnfinished(const v1::JobState& state);
  WorkTicket NextTicket();
  // Handed out and not done, or come back; in step order.
  std::vector<WorkTicket> Unfinished() const;

  WorkOptions options_;
  int64_t completed_steps_ = 0;
  // The first step, and the first record position, that was never handed out.
  int64_t next_step_ = 0;
  int64_t next_epoch_ = 0;
  int64_t next_position_ = 0;
  std::map<int64_t, WorkTicket> returned_;  // by step
  uint64_t next_lease_id_ = 1;
  std::map<uint64_t, Lease> leases_;  // by id
  std::set<uint64_t> taken_back_;     // lease ids
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_WORK_LEDGER_H_
