// The work that nobody holds: steps and records that were never handed out, and those that came
// back.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_POOL_H_
#define KEELSON_CHIEF_COORDINATION_WORK_POOL_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "chief/coordination/record_set.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// The number of steps where the stream's end alone ends the training.
inline constexpr int64_t kEndlessSteps = int64_t{1} << 62;

struct WorkOptions {
  int64_t max_steps = 0;    // >= 0
  int64_t num_records = 0;  // > 0; of a stream more than it will ever have
  int64_t batch_size = 0;   // > 0; may be greater than num_records
  // The number of the first lease. A random start tells the leases of a restarted chief from those
  // of its predecessor. Not 0, which means "no lease" on the wire.
  uint64_t first_lease_id = 1;
  // The id of a job that has none yet; 0: a random one.
  uint64_t job_id = 0;

  // Records become known as the files of a stream come.
  bool stream = false;

  // > 0: the training is so many epochs, and max_steps follows from them (WorkLedger::CountSteps).
  int64_t epochs = 0;

  // max_steps; 0 where the stream's end alone ends the training.
  int64_t KnownSteps() const { return max_steps == kEndlessSteps ? 0 : max_steps; }
  // " of 1000", for messages; empty where the stream's end alone ends the training.
  std::string OfSteps() const;
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

// A pure state machine: no threads, no I/O, no time. Not thread-safe. Steps and records are taken
// and come back separately; those that came back are taken first.
class WorkPool {
 public:
  // The whole work of a job.
  explicit WorkPool(const WorkOptions& options)
      : max_steps_(options.max_steps),
        num_records_(options.num_records),
        batch_size_(options.batch_size),
        is_stream_(options.stream),
        known_(is_stream_ ? 0 : num_records_) {}

  // Continues from a snapshot; WorkLedger::FromState says what becomes of options that changed.
  void ContinueFrom(const v1::JobState& state);
  // Steps below `step` were handed out.
  void SetNextStep(int64_t step) { next_step_ = step; }

  // No step is left, or of a stream no batch: a smaller one is taken only at its end.
  bool empty() const { return NoStepLeft() || NoBatchLeft(); }
  // The next step and batch. The pool is not empty.
  WorkTicket Take();

  // The stream has its first `known` records, as far as anybody knows.
  void SetKnown(int64_t known) { known_ = known; }
  // No record follows those that are known.
  void EndStream() { ended_ = true; }
  bool stream_ended() const { return is_stream_ && ended_; }
  // The stream has ended, and all of its records were handed out.
  bool StreamIsUsedUp() const;
  // The next `count` batches. Where an epoch has less left than these, the rest is shared out
  // evenly.
  std::vector<RecordRange> TakeBatches(int64_t count);
  // How many steps of `batches_per_step` batches it takes to hand out what came back and what is
  // left of so many epochs; 0: they are over.
  int64_t StepsLeftOf(int64_t epochs, int64_t batches_per_step) const;
  void SetMaxSteps(int64_t max_steps) { max_steps_ = max_steps; }

  // Numbers steps from `step` on without gaps: the numbers of those that came back are dropped.
  void RestartSteps(int64_t step);

  // These come back. False: it is there already (for records: a part of them).
  bool AddStep(int64_t step) { return free_steps_.insert(step).second; }
  bool AddRecords(const RecordRange& records);
  void Add(absl::Span<const WorkTicket> tickets);

  // ---- Work that a predecessor handed out after it last persisted its state.

  // The tickets can be of this job: disjoint, within their epochs, and not far ahead of the pool.
  bool Plausible(absl::Span<const WorkTicket> tickets) const;
  // `records` were never handed out, or came back.
  bool Has(const RecordRange& records) const;
  // Takes records that the pool has, and a step for them: the ticket's if that is free, else
  // another, which the ticket then has. False: no step is left; nothing is taken.
  bool TakeTicket(WorkTicket* ticket);
  // Removes the part of `records` that came back.
  void RemoveReturned(const RecordRange& records) { returned_.Remove(records); }

  // The first step, and the first record position, that was never handed out.
  int64_t next_step() const { return next_step_; }
  int64_t next_epoch() const { return next_epoch_; }
  int64_t next_position() const { return next_position_; }
  // The steps and records that came back.
  const std::set<int64_t>& free_steps() const { return free_steps_; }
  const RecordSet& returned() const { return returned_; }

  // The number of steps in `epochs` whole epochs.
  static int64_t StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size);

 private:
  bool NoStepLeft() const { return free_steps_.empty() && next_step_ >= max_steps_; }
  bool NoBatchLeft() const;
  int64_t TakeStep();
  // Returns the next `size` records that were never handed out, or what is left of the epoch.
  RecordRange AdvanceCursor(int64_t size);
  bool TakeStepOf(WorkTicket* ticket);
  void TakeRecordsOf(const WorkTicket& ticket);

  int64_t max_steps_;
  int64_t num_records_;
  int64_t batch_size_;
  bool is_stream_;
  // Records that can be handed out: fewer than num_records_ of a stream.
  int64_t known_;
  bool ended_ = false;
  int64_t next_step_ = 0;
  int64_t next_epoch_ = 0;
  int64_t next_position_ = 0;
  std::set<int64_t> free_steps_;
  RecordSet returned_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_POOL_H_
