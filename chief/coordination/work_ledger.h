// The books of the training work: which steps and records are handed out, to whom, and what is
// done.
//
// A ticket is one step and the records of its batch, as positions in the epoch's shuffled order.
// Tickets walk through the epochs in order; a batch never crosses the end of an epoch, the last
// one is smaller. Tickets are leased; those of a lost worker come back, their steps and their
// records apart, and go to the next one who asks. A round is one step on several batches at once
// (sync_rounds.h), without leases. So each step is completed exactly once, and each record of an
// epoch once: at least once where a lost worker had trained on it without reporting.
//
// The books outlive a chief in two forms: a snapshot's JobState, which belongs to values that are
// rolled back to it, and a ChiefMemory, which may be older than what the workers do meanwhile. They
// know the rest (Adopt).
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe. It keeps what is handed
// out and not done, and 8 bytes per lease that was taken back.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_
#define KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chief/coordination/record_set.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

struct WorkOptions {
  int64_t max_steps = 0;    // >= 0
  int64_t num_records = 0;  // > 0
  int64_t batch_size = 0;   // > 0; may be greater than num_records
  // Leases are numbered from here. A random start tells the leases of a restarted chief from
  // those of its predecessor. Not 0, which means "no lease" on the wire.
  uint64_t first_lease_id = 1;
  // Of a job that has none yet; 0: drawn.
  uint64_t job_id = 0;
};

// Step `step` trains on positions [begin, end) of epoch `epoch`.
struct WorkTicket {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  RecordRange records() const { return {epoch, begin, end}; }
  friend bool operator==(const WorkTicket&, const WorkTicket&) = default;
};

// Tickets to be completed in this order.
struct WorkLease {
  uint64_t id = 0;
  std::vector<WorkTicket> tickets;
  // What the worker is to do about them; see StepTicket and AcquireWorkResponse.
  uint32_t attempt = 0;
  bool contested = false;
  bool fresh_values = false;
};

// What a worker says that it holds.
struct HeldLease {
  uint64_t id = 0;
  std::vector<WorkTicket> tickets;
  int64_t completed = 0;
  uint32_t attempt = 0;  // as in WorkLease
};

class WorkLedger {
 public:
  // A job that starts at its first step.
  explicit WorkLedger(WorkOptions options);

  // Continues from a snapshot. Its unfinished records are handed out first; steps are numbered on
  // from `global_step`. A global_step of max_steps or more is a job that is done. An empty state is
  // a new job. What changed since the snapshot:
  //   batch_size   positions keep their meaning: goes on at the same place in the new size;
  //                unfinished ranges are cut to it.
  //   num_records  positions mean nothing any more: goes on at the beginning of the next epoch (of
  //                this one if it had not begun); unfinished ranges are dropped.
  //   max_steps    smaller: what no longer fits is not handed out.
  // DATA_LOSS: the state contradicts itself; the text starts with "_keelson/job" and the field.
  static absl::StatusOr<WorkLedger> FromState(const v1::JobState& state, WorkOptions options);

  // Continues where a predecessor's memory stands; its leases are held by their workers still.
  // DATA_LOSS: the memory contradicts itself or is another job's (records or batch size); the text
  // starts with "memory" and the field.
  static absl::StatusOr<WorkLedger> FromMemory(const v1::ChiefMemory& memory, WorkOptions options);

  // Where the job stands: what is leased or in a round counts as unfinished. `config_hash` and
  // `mode` are left to the caller.
  v1::JobState ToState() const;
  // The same for a successor: job, leases, returned and next_step.
  void ToMemory(v1::ChiefMemory* memory) const;

  // ---- Leases.

  // Leases up to `max_tickets` tickets to `worker` (its incarnation): what came back first. Nothing
  // when AllHandedOut() or max_tickets is not positive. No round is open.
  std::optional<WorkLease> Acquire(uint64_t worker, int64_t max_tickets);

  // The first `completed` tickets of the lease are done. Repeating it, or reporting less
  // than before, is harmless. A completed lease is forgotten.
  // ABORTED: the lease is not the worker's: taken back by Release, another worker's, or never
  // granted here. INVALID_ARGUMENT: `completed` is negative or more than the lease has.
  absl::Status Complete(uint64_t worker, uint64_t lease_id, int64_t completed);

  // Takes back all leases of `worker`; its unfinished tickets will be handed out again. Returns
  // how many those are.
  int64_t Release(uint64_t worker);

  // ---- Leases of a predecessor.

  // Books what `worker` says of a lease that these books know as its own. False: they do not.
  bool Confirm(uint64_t worker, const HeldLease& lease);

  // The same of a lease that the predecessor granted after its memory was taken. What the worker
  // has completed is booked, the rest is its lease from now on. False: some of that is done or
  // someone else's, or `lease` makes no sense; then only the completed part is booked. A worker
  // that holds some of it according to the memory alone cannot have it any more: the predecessor
  // must have taken it back. All leases of that worker are released, and its incarnation is added
  // to `superseded`.
  bool Adopt(uint64_t worker, const HeldLease& lease, std::vector<uint64_t>* superseded);

  // Takes back those of the worker's leases that come from a memory and were not confirmed: it
  // never heard of them. Returns their unfinished tickets.
  int64_t ReleaseUnconfirmed(uint64_t worker);

  // ---- Rounds: step completed_steps() on `tickets` batches. No leases are out.

  // Batches of records, what came back first. Where an epoch has less left than `tickets` batches,
  // the rest is shared out evenly, so that R batches of B records are what one of R*B would be.
  std::vector<RecordRange> OpenRound(int64_t tickets);
  // The step is done, with these of the round's batches; the others come back.
  void CompleteRound(absl::Span<const RecordRange> used);
  // All batches come back.
  void AbandonRound();
  bool round_open() const { return !round_.empty(); }

  // ---- Figures.

  int64_t completed_steps() const { return completed_steps_; }
  // No step to lease now; what is leased may still come back.
  bool AllHandedOut() const { return free_steps_.empty() && next_step_ >= options_.max_steps; }
  bool Done() const { return completed_steps_ >= options_.max_steps; }
  bool AnyLeased() const { return !leases_.empty(); }
  // All steps below it are done.
  int64_t FirstUnfinishedStep() const;
  // Tickets that the worker holds and has not completed.
  int64_t Outstanding(uint64_t worker) const;
  // Records done, as a multiple of the records of an epoch.
  double epochs_completed() const;
  const WorkOptions& options() const { return options_; }

  // Rises with every change; Touch is for changes of what the caller stores beside these books. Far
  // above a predecessor's, so that none of its versions comes again.
  uint64_t version() const { return version_; }
  void Touch() { ++version_; }
  // A lease number that was never used.
  uint64_t NewLeaseId() { return next_lease_id_++; }
  // What was continued from, without its ranges; empty for a new job.
  const v1::JobState& origin() const { return origin_; }

  // Steps of `epochs` whole epochs.
  static int64_t StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size);

 private:
  struct Lease {
    // Inherited is what a memory told, and its worker has not confirmed yet.
    enum Origin { kGranted, kInherited, kConfirmed, kAdopted };

    uint64_t worker = 0;
    int64_t completed = 0;
    std::vector<WorkTicket> tickets;
    Origin origin = kGranted;

    bool from_memory() const { return origin == kInherited || origin == kConfirmed; }
    int64_t size() const { return static_cast<int64_t>(tickets.size()); }
    absl::Span<const WorkTicket> unfinished() const {
      return absl::MakeConstSpan(tickets).subspan(static_cast<size_t>(completed));
    }
  };
  using Leases = std::map<uint64_t, Lease>;  // by id

  void TakeOrigin(const v1::JobState& state);
  void AdoptCursor(const v1::JobState& state);
  // Cut to batches. False: some of it is there already.
  bool AddReturned(const RecordRange& records);
  absl::Status AdoptReturned(const v1::ChiefMemory& memory);
  absl::Status AdoptLeases(const v1::ChiefMemory& memory);

  int64_t TakeStep();
  RecordRange TakeRecords();
  // The next `size` records that were never handed out, or what the epoch has left.
  RecordRange AdvanceCursor(int64_t size);

  bool WasGranted(uint64_t lease_id) const;
  void GiveBack(absl::Span<const WorkTicket> tickets);
  int64_t ReleaseIf(absl::FunctionRef<bool(const Lease&)> condition);
  bool IsSane(const HeldLease& lease) const;
  // Never handed out, or come back.
  bool IsFree(const RecordRange& records) const;
  // Takes free records, and a step for them: the ticket's if that is free, else another, which the
  // ticket then has. False: no step is left; nothing is taken.
  bool TakeFree(WorkTicket* ticket);
  bool TakeFreeStep(int64_t* step);
  void TakeFreeRecords(const RecordRange& records);
  void BookCompleted(absl::Span<const WorkTicket> tickets);
  void ReleaseSuperseded(uint64_t worker, const HeldLease& lease,
                         std::vector<uint64_t>* superseded);

  // Records handed out or come back, and not done.
  RecordSet Unfinished() const;

  WorkOptions options_;
  v1::JobState origin_;
  uint64_t version_ = 1;
  int64_t completed_steps_ = 0;
  // The first step, and the first record position, that was never handed out. A step below
  // `next_step_` is done unless it is free or leased; so with records below the cursor.
  int64_t next_step_ = 0;
  int64_t next_epoch_ = 0;
  int64_t next_position_ = 0;
  std::set<int64_t> free_steps_;  // came back
  RecordSet returned_;
  std::vector<RecordRange> round_;
  uint64_t next_lease_id_ = 1;
  Leases leases_;
  std::set<uint64_t> taken_back_;  // lease ids
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_
