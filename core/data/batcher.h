// Prepares batches ahead of the training step, on a thread of its own.
#ifndef KEELSON_CORE_DATA_BATCHER_H_
#define KEELSON_CORE_DATA_BATCHER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/data/dataset.h"
#include "core/data/ticket.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/row_indexer.h"

namespace keelson {

struct BatcherOptions {
  // The seed of the record order; the same for all tasks of a job.
  uint64_t seed = 0;
  bool sequential = false;
  int64_t order_group = 0;  // see RecordOrder
  // Tickets held at most beyond those the consumer has taken; at least 1.
  int depth = 2;
  // The model's: the rows of its tables that a batch needs are found with the batch.
  std::vector<TableFeatures> tables = {};
};

struct PreparedBatch {
  Ticket ticket;
  Batch batch;
};

// Takes tickets from a source, reads their records in the epoch's order, and queues the batches.
// The methods may be called from any thread.
class Batcher {
 public:
  // Starts the thread. `dataset` and `source` are not owned and must outlive the batcher.
  Batcher(const Dataset* dataset, TicketSource* source, BatcherOptions options);

  // Cancels and joins. A source that blocks in Next must have been cancelled by its owner before,
  // or the destructor waits for it.
  ~Batcher();

  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // The next batch, in the order of the tickets; waits for it. Nullopt: the source has no more work
  // and everything was delivered. After the batches before it, and from then on:
  // CANCELLED: Cancel was called; batches in the queue are dropped.
  // INVALID_ARGUMENT: a ticket's positions are empty or not within the dataset.
  // Any other: what the source or the dataset reported.
  absl::StatusOr<std::optional<PreparedBatch>> Next();

  // Whether Next would not wait.
  bool Ready() const;

  // Copies the ids of the rows that the batch of the next call of Next needs, by table
  // (BatchRows::ids), so that they can be fetched while the batch before it is computed. False:
  // that batch is not ready, or there is none; `ids` is then as it was. No other thread may call
  // Next meanwhile.
  bool CopyNextIds(std::vector<std::vector<uint64_t>>* ids) const;

  // Gives a batch back, so that its memory serves another one.
  void Recycle(Batch batch);

  // Ends preparation and every call of Next, waiting and later ones. May be called repeatedly.
  void Cancel();

 private:
  void Run();
  // Waits for room in the queue before a ticket is taken, so that none is held needlessly. False
  // once cancelled.
  bool WaitForRoom();
  absl::StatusOr<std::optional<PreparedBatch>> Prepare();
  absl::Status ReadTicket(const Ticket& ticket, Batch* batch);
  Batch TakeRecycled();
  // Sets the status that Next returns once the queue is empty.
  void End(absl::Status status);
  size_t Depth() const;

  const Dataset* const dataset_;
  TicketSource* const source_;
  const BatcherOptions options_;

  // Used by the batcher's thread alone.
  std::vector<int64_t> records_;
  RowIndexer rows_;

  mutable Mutex mu_;
  CondVar changed_;
  std::deque<PreparedBatch> queue_ ABSL_GUARDED_BY(mu_);
  std::vector<Batch> recycled_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);

  Thread thread_;  // last: it uses everything above
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_BATCHER_H_
