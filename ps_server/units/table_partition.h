// One of the 256 partitions that the rows of all tables of a job are divided into: the unit of
// locking, of exactly-once pushes and of snapshots, as Block is for variables.
//
// What differs from a block: a pull copies rows under the lock instead of taking a reference, since
// a row is as small as a reference and its bookkeeping; and a cut opens a generation, in which the
// first change of each row keeps what it was, since every message touches every partition.
#ifndef KEELSON_PS_SERVER_UNITS_TABLE_PARTITION_H_
#define KEELSON_PS_SERVER_UNITS_TABLE_PARTITION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/optim/row_optimizer.h"
#include "core/table/initial_rows.h"
#include "core/table/row_changes.h"
#include "core/table/row_layout.h"
#include "core/table/row_table.h"
#include "core/tensor/table_spec.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"
#include "ps_server/units/applied_sequences.h"
#include "ps_server/units/block.h"
#include "ps_server/units/hot_ids.h"
#include "ps_server/units/row_round_sum.h"

namespace keelson {

// What all partitions of a table share. It stays where it is. The ghosts of a table (GhostsOf) are
// rows as well, without numbers; to partitions they are a table of their own.
struct ServedTable {
  static constexpr int64_t kIdsForOneHot = 64;

  TableSpec spec;
  RowLayout layout;
  InitialRows initial;
  const RowOptimizer* optimizer = nullptr;  // null: ghosts
  // Gets a part of the ids of updates: one of kIdsForOneHot, drawn at random.
  std::shared_ptr<HotIds> hot = nullptr;
  // Where the store has the table's ghosts; nothing: there are none.
  std::optional<size_t> ghosts = std::nullopt;
  RowTable::Options rows = {};  // points to the others
};

// The gradients of rows of one table, which a message has for a partition: one for each of the ids,
// which are distinct. The cursor is at the first one, and is moved behind the last.
struct RowUpdate {
  size_t table = 0;
  absl::Span<const uint64_t> ids;
  WireFormat format = WireFormat::kFloat32;
  ByteCursor* gradients = nullptr;
};

// Rows of one table that an answer has: a bit for each id that was asked for, then the rows that
// exist.
struct RowAnswer {
  std::vector<uint8_t> presence;
  std::string rows;  // encoded
  uint32_t num_rows = 0;
};

// A part of such an answer: of these ids, the first of which has the bit `first_bit`.
struct RowQuery {
  size_t table = 0;
  absl::Span<const uint64_t> ids;
  WireFormat format = WireFormat::kFloat32;
  size_t first_bit = 0;
  RowAnswer* answer = nullptr;
};

// The time at which rows are read or updated, for optimizers that make up for missed steps.
struct RowTime {
  int64_t step = 0;  // that an update belongs to; when reading: steps that have been done
  float learning_rate = 0;
  // Of the steps that rows have missed.
  float missed_learning_rate = 0;
  // By which rows expire: the newest step that has begun; when reading: steps that have been done.
  int64_t clock = 0;
};

// Whether a cut is to tell what has changed since an earlier one, and whether later ones are to.
struct CutChanges {
  uint64_t since = 0;  // generation of the earlier cut; 0: none
  bool keep = false;   // otherwise the account of changes, if there is one, ends
};

// A table in a cut.
struct TableCutSize {
  int64_t rows = 0;
  // Since CutChanges::since; nothing: not known.
  std::optional<ChangesSince> changes;
};

// What there is of a table.
struct TableSize {
  int64_t rows = 0;
  // Of rows and their index, and of what is kept for cuts.
  int64_t bytes = 0;
  // Updates of rows that could not be made.
  int64_t refused_rows = 0;
  // Rows that were erased because they had expired.
  int64_t expired_rows = 0;
  // Ids that are counted, and have no row; rows that were made for such.
  int64_t ghosts = 0;
  int64_t admitted_rows = 0;
  // Rows that were erased to make place for others.
  int64_t evicted_rows = 0;
  // Ids that were looked up, and those of them without a row.
  int64_t looked_up = 0;
  int64_t looked_up_absent = 0;

  TableSize& operator+=(const TableSize& other);
};

// Thread-safe.
class TablePartition {
 public:
  // Unit `unit` of the shard with these `sequences`. All outlive this.
  TablePartition(absl::Span<const ServedTable> tables, size_t unit, AppliedSequences* sequences);

  // Applies gradients, which have been checked, creating rows as needed. False, and nothing changes
  // but the cursors: this push or a later one of the same incarnation has been applied already. A
  // row that would be beyond TableSpec::max_rows, or for which there is no memory, is left out, and
  // counted; or another one is evicted for it (TableSpec::evict). A row that has expired is made
  // anew. An id gets its row with the update of the number TableSpec::admit_after; those before are
  // left out.
  bool Apply(const PushIdentity& push, const RowTime& time, absl::Span<const RowUpdate> updates);

  // As Block's.
  StageResult Stage(const PushIdentity& push, const RoundId& round, float weight,
                    absl::Span<const RowUpdate> updates);
  uint32_t Contributions(const RoundId& round) const;
  void CommitRound(const RowTime& time);

  // Adds rows to answers; reading creates none. A row that has expired is absent.
  void Read(const RowTime& time, absl::Span<const RowQuery> queries) const;

  // Of each table, ghosts among them, as of its last change. Waits for nothing.
  std::vector<TableSize> Sizes() const;

  int64_t rows(size_t table) const { return sizes_[table].rows.load(std::memory_order_relaxed); }

  // ---- Expired rows are absent for Apply and Read, but take memory until they are swept. Both
  // calls take at most 0.2 ms.

  static constexpr size_t kSweptPlaces = 1024;
  // Looks at the next kSweptPlaces rows or freed rows from *next on, and erases those that have
  // expired by `clock`; *next is moved behind them, from 0. Adds to *seen the rows that it has
  // seen. False: those were the last.
  bool Sweep(size_t table, int64_t clock, uint64_t* next, int64_t* seen);
  // Moves some rows to free places, so that memory can be given back, if a quarter of the memory is
  // unused. False: there is no more to do now.
  bool Compact(size_t table);

  // ---- Cuts. One is open at a time; StartCut ends the one before. Generations rise.

  // Tells what there is of each table.
  std::vector<TableCutSize> StartCut(uint64_t generation, const CutChanges& changes = {});
  void EndCut(uint64_t generation);
  // Passes the rows that a table had at the cut to `visit`, ids ascending, some at a time; only
  // those that had changed since the cut `since`, unless that is 0. `visit` is called with the
  // lock, and must be quick. `go_on` is called without it. UNAVAILABLE: the cut has been ended.
  // RESOURCE_EXHAUSTED: there was no memory to keep it. Errors of `go_on`.
  using RowVisitor =
      absl::FunctionRef<void(const RowTable& table, absl::Span<const RowHeader* const> rows)>;
  absl::Status ReadCut(uint64_t generation, size_t table, uint64_t since, RowVisitor visit,
                       absl::FunctionRef<absl::Status()> go_on);

  // ---- Restoring, before the partition is used by others.

  // Makes rows and has `fill` set their header's counters, values and slots; ids are distinct and
  // not there yet. Costs least when all rows of the partition come in one call.
  // RESOURCE_EXHAUSTED: there is no memory.
  using RowFiller = absl::FunctionRef<void(size_t index, RowHeader* row)>;
  absl::Status AddRows(size_t table, absl::Span<const uint64_t> ids, RowFiller fill);
  // Notes what the partition had applied when it was stored.
  void RestoreApplied(uint64_t incarnation, uint64_t sequence) {
    sequences_->Restore(unit_, incarnation, sequence);
  }

 private:
  bool TakeSequence(const PushIdentity& push) {
    return sequences_->Take(unit_, push.incarnation, push.sequence);
  }
  void SkipGradients(absl::Span<const RowUpdate> updates) const;
  // Calls `use` with parts of the update and their gradients as float32 [ids, dim].
  using GradientUser =
      absl::FunctionRef<void(absl::Span<const uint64_t> ids, absl::Span<const float> gradients)>;
  void VisitGradients(const RowUpdate& update, GradientUser use) const;
  bool HasExpired(size_t table, const RowHeader& row, int64_t clock) const {
    const TableSpec& spec = tables_[table].spec;
    return spec.expires() && MissedSteps(row.last_step, clock) >= spec.expire_after_steps;
  }
  // Erases those of the ids that have rows which have expired.
  void EraseExpired(size_t table, absl::Span<const uint64_t> ids, int64_t clock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Erases rows and counts them as expired.
  void Expire(size_t table, absl::Span<const uint64_t> ids) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tells ServedTable::hot of some of them.
  void DrawHot(size_t table, absl::Span<const uint64_t> ids) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Finds the rows to update, and makes those that are missing; null: there is none. At most
  // kRowsAtATime.
  void RowsToUpdate(size_t table, absl::Span<const uint64_t> ids, const RowTime& time,
                    absl::Span<RowHeader*> rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same of ids that have no rows. Nothing is refused that has to be counted yet.
  void Admit(size_t table, absl::Span<const uint64_t> ids, absl::Span<const uint64_t> batch,
             const RowTime& time, absl::Span<RowHeader*> rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Finds or makes rows. Those of `batch`, ascending ids, stay where they are.
  void Make(size_t table, absl::Span<const uint64_t> ids, absl::Span<const uint64_t> batch,
            int64_t clock, absl::Span<RowHeader*> rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Erases a row that is worth less than others, and none of `batch`. False: there is none.
  bool Evict(size_t table, absl::Span<const uint64_t> batch, int64_t clock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many rows may be added.
  size_t RoomFor(size_t table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateRows(size_t table, absl::Span<const uint64_t> ids, const RowTime& time,
                  absl::Span<const float> gradients) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadRows(const RowTime& time, const RowQuery& query) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same of one table; the cut has begun.
  TableCutSize AccountForChanges(const CutChanges& changes, RowTable* rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has Sizes tell what there is of the table now.
  void NoteSize(size_t table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Span<const ServedTable> tables_;
  const size_t unit_;
  AppliedSequences* const sequences_;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<RowTable>> rows_ ABSL_GUARDED_BY(mu_);  // by table
  std::unique_ptr<RowRoundSum> sum_ ABSL_GUARDED_BY(mu_);             // null: no round is open
  uint64_t cut_ ABSL_GUARDED_BY(mu_) = 0;                             // 0: none is open

  uint64_t evictions_ ABSL_GUARDED_BY(mu_) = 0;  // decides on the rows that are drawn
  uint64_t draws_ ABSL_GUARDED_BY(mu_) = 0;      // decides on the ids that are drawn
  // By table: the ids before the next one that is drawn.
  std::vector<size_t> before_draw_ ABSL_GUARDED_BY(mu_);

  // By table; written with the lock, read without.
  struct NotedSize {
    std::atomic<int64_t> rows{0};
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> refused_rows{0};
    std::atomic<int64_t> expired_rows{0};
    std::atomic<int64_t> admitted_rows{0};
    std::atomic<int64_t> evicted_rows{0};
    std::atomic<int64_t> looked_up{0};
    std::atomic<int64_t> looked_up_absent{0};
  };
  mutable std::vector<NotedSize> sizes_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_TABLE_PARTITION_H_
