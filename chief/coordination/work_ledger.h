// The ledger of the training work: which steps and records are handed out, to whom, and which are
// done.
//
// A ticket is one step and the records of its batch, as positions in the epoch's shuffled order.
// Tickets walk through the epochs in order; a batch never crosses the end of an epoch, the last
// one is smaller. Tickets are leased. Those of a lost worker come back, steps and records
// separately, and go to the next worker that asks. A round is one step on several batches at once
// (sync_rounds.h), without leases. So each step is completed exactly once, and each record is used
// once per epoch (or more than once, if a lost worker had trained on it without reporting).
//
// The ledger outlives a chief in two forms: the JobState of a snapshot, to which the values are
// rolled back, and the PersistedJobState that is persisted at the servers, which may be older than
// the workers' progress. The workers then report the rest (Adopt).
//
// The records of a stream (DataConfig.stream) are positions of a single epoch that does not end.
// Only records of files that the ledger was told of are handed out, and files whose records are all
// done are forgotten.
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe. It stores the work that is
// handed out and not done, and 8 bytes per lease that was taken back.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_
#define KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chief/coordination/lease_book.h"
#include "chief/coordination/record_set.h"
#include "chief/coordination/stream_files.h"
#include "chief/coordination/work_pool.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Tickets to be completed in this order.
struct WorkLease {
  uint64_t id = 0;
  std::vector<WorkTicket> tickets;
  // How the worker is to handle them; see StepTicket and AcquireWorkResponse.
  uint32_t attempt = 0;
  bool contested = false;
  bool last_of_step = false;
  bool follows_round = false;
  bool fresh_values = false;
  uint32_t order = 0;
  // The files of a stream that have the tickets' records.
  std::vector<v1::StreamFile> stream_files;
};

// A lease as a worker reports that it holds it.
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
  // a new job. Options that changed since the snapshot:
  //   batch_size   positions keep their meaning: goes on at the same place in the new size;
  //                unfinished ranges are cut to it.
  //   num_records  positions mean nothing any more: goes on at the beginning of the next epoch (of
  //                this one if it had not begun); unfinished ranges are dropped.
  //   max_steps    smaller: what no longer fits is not handed out.
  // DATA_LOSS: the state contradicts itself; the text starts with "_keelson/job" and the field.
  static absl::StatusOr<WorkLedger> FromState(const v1::JobState& state, WorkOptions options);

  // Continues from the job state that a predecessor persisted; its leases are still held by their
  // workers. DATA_LOSS: the state contradicts itself or is another job's (records or batch size);
  // the text starts with "persisted job state" and the field.
  static absl::StatusOr<WorkLedger> FromPersisted(const v1::PersistedJobState& persisted,
                                                  WorkOptions options);

  // With WorkOptions::epochs: makes max_steps the step at which these are over when what is left of
  // them is taken `batches_per_step` batches at a time; steps that were taken otherwise count as
  // they were. Exact unless an epoch ends with fewer records than a step has batches: then the last
  // step goes beyond the last epoch. No round may be open.
  void CountSteps(int64_t batches_per_step);

  // The ledger's state for a snapshot: what is leased or in a round counts as unfinished.
  // `config_hash` and `mode` are left to the caller.
  v1::JobState ToState() const;
  // The ledger's state for a successor: fills in job, leases, returned and next_step.
  void ToPersisted(v1::PersistedJobState* persisted) const;

  // ---- Leases.

  // Leases up to `max_tickets` tickets to `worker` (its incarnation); work that came back goes
  // first. Returns nothing when AllHandedOut() or max_tickets is not positive. No round may be
  // open.
  std::optional<WorkLease> Acquire(uint64_t worker, int64_t max_tickets);

  // The first `completed` tickets of the lease are done. Repeating it, or reporting less
  // than before, is harmless. A completed lease is forgotten.
  // ABORTED: the lease is not the worker's: taken back by Release, another worker's, or never
  // granted here. INVALID_ARGUMENT: `completed` is negative or more than the lease has.
  absl::Status Complete(uint64_t worker, uint64_t lease_id, int64_t completed);

  // Takes back all leases of `worker`; its unfinished tickets will be handed out again. Returns
  // their number.
  int64_t Release(uint64_t worker);

  // ---- Leases of a predecessor.

  // Records what `worker` reports of a lease that this ledger knows as its own. False: it does not.
  bool Confirm(uint64_t worker, const HeldLease& lease);

  // The same for a lease that the predecessor granted after it last persisted its state. What the
  // worker has completed is recorded, the rest is its lease from now on. False: a part of the rest
  // is done or another worker's, or `lease` is malformed; then only the completed part is recorded.
  // If only the persisted state gives a part of it to another worker, the predecessor must have
  // taken that back: all leases of that worker are released, and its incarnation is added to
  // `superseded`.
  bool Adopt(uint64_t worker, const HeldLease& lease, std::vector<uint64_t>* superseded);

  // Takes back the worker's leases that come from persisted state and were not confirmed: the
  // worker never received them. Returns the number of their unfinished tickets.
  int64_t ReleaseUnconfirmed(uint64_t worker);

  // ---- Rounds: step completed_steps() on `tickets` batches. No leases are out.

  // Opens a round and returns its batches of records; those that came back go first. Where an epoch
  // has less left than `tickets` batches, the rest is shared out evenly, so that R batches of B
  // records are what one of R*B would be.
  std::vector<RecordRange> OpenRound(int64_t tickets);
  // The step is done with the batches `used`; the round's other batches come back.
  void CompleteRound(absl::Span<const RecordRange> used);
  // Closes the round; all its batches come back.
  void AbandonRound();
  bool round_open() const { return !round_.empty(); }

  // ---- A stream.

  // Its next file, with this many records (> 0).
  void AddStreamFile(std::string name, int64_t records);
  // No file follows: the rest is handed out, also batches that are smaller.
  void EndStream();
  bool stream_ended() const { return pool_.stream_ended(); }
  const StreamFiles& stream_files() const { return stream_files_; }
  // The first record that is not done.
  int64_t FirstUndoneRecord() const;
  // The number of the stream's records that are done.
  int64_t DoneRecords() const;

  // ---- Figures.

  int64_t completed_steps() const { return completed_steps_; }
  // No step is left to lease now; leased ones may still come back.
  bool AllHandedOut() const { return pool_.empty(); }
  bool Done() const { return completed_steps_ >= options_.max_steps || StreamIsDone(); }
  bool AnyLeased() const { return !leases_.empty(); }
  // All steps below it are done.
  int64_t FirstUnfinishedStep() const;
  // Tickets that the worker holds and has not completed.
  int64_t Outstanding(uint64_t worker) const { return leases_.Outstanding(worker); }
  // Adds the workers that hold tickets which they have not completed.
  void AddOwing(std::set<uint64_t>* workers) const { leases_.AddOwing(workers); }
  // The number of records that are done, in epochs; 0 of a stream.
  double epochs_completed() const;
  const WorkOptions& options() const { return options_; }

  // Rises with every change; Touch raises it for changes of what the caller stores beside the
  // ledger. It starts far above a predecessor's, so that no version is used twice.
  uint64_t version() const { return version_; }
  void Touch() { ++version_; }
  // A lease number that was never used.
  uint64_t NewLeaseId() { return leases_.NewId(); }
  // The number of leases that were taken back and are remembered; see LeaseBook.
  size_t taken_back() const { return leases_.taken_back(); }
  // The state from which this ledger continues, without its ranges; empty for a new job.
  const v1::JobState& origin() const { return origin_; }

 private:
  void TakeOrigin(const v1::JobState& state);
  absl::Status AdoptReturned(const v1::PersistedJobState& persisted);
  absl::Status AdoptLeases(const v1::PersistedJobState& persisted);

  // What LeaseBook::TakeBack has taken back is in the pool again; returns the number of tickets.
  int64_t PutBack(const LeaseBook::TakenBack& taken);
  bool IsSane(const HeldLease& lease) const;
  void CountCompleted(absl::Span<const WorkTicket> tickets);
  void ReleaseSuperseded(uint64_t worker, const HeldLease& lease,
                         std::vector<uint64_t>* superseded);

  // Records that are not done and were handed out or came back.
  RecordSet Unfinished() const;
  bool StreamIsDone() const;

  WorkOptions options_;
  v1::JobState origin_;
  uint64_t version_ = 1;
  int64_t completed_steps_ = 0;
  // A step that was handed out is done unless it came back or is leased; the same holds for records
  // (which may be in a round, too).
  WorkPool pool_;
  std::vector<RecordRange> round_;
  LeaseBook leases_;
  StreamFiles stream_files_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_LEDGER_H_
