// Carries the rows of tables from the servers to a worker's model, and their gradients back.
#ifndef KEELSON_WORKER_TABLE_EXCHANGE_H_
#define KEELSON_WORKER_TABLE_EXCHANGE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/client/services/parameter_client.h"
#include "core/data/batcher.h"
#include "core/model/model.h"
#include "core/model/spec/batch.h"

namespace keelson {

// A step: unless Has, Request and a pull; Load; then gradients() as the model's target, NoteReady
// for each table, and the last of these sends them, with a request for the rows of the next batch
// where the batcher has it already: they come with the answer to the push, so that a step is one
// round trip. Used by one thread. Errors are those of the client and the model.
class TableExchange {
 public:
  // Null: the model has no tables. All outlive it; the batcher is the one whose batches are trained
  // on.
  static std::unique_ptr<TableExchange> Create(ParameterClient* client, Model* model,
                                               const Batcher* batcher);

  // Whether the client has the rows that the batch needs.
  bool Has(const Batch& batch) const;
  // Has the client's next pull bring them.
  absl::Status Request(const Batch& batch);
  // Gives the model the client's rows, which are those of `batch`, and makes room for their
  // gradients.
  absl::Status Load(const Batch& batch);

  // By table of the model, for GradientTarget.
  absl::Span<const absl::Span<float>> gradients() const { return gradients_; }
  // Another table's gradients are there. The last one offers all of them to the client, whose step
  // has begun. `ahead`: the answer to the push brings rows.
  absl::Status NoteReady(bool ahead);

 private:
  TableExchange(ParameterClient* client, Model* model, const Batcher* batcher);

  // The ids by table of the placement, from those by table of the model.
  std::shared_ptr<const RowIds> ToClient(std::vector<std::vector<uint64_t>> ids) const;
  absl::Status RequestNext();

  TableRows* const rows_;
  Model* const model_;
  const Batcher* const batcher_;
  // Where the client has each of the model's tables: it orders them by name.
  std::vector<size_t> at_client_;

  std::vector<std::vector<float>> memory_;
  std::vector<absl::Span<float>> gradients_;
  size_t ready_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_TABLE_EXCHANGE_H_
