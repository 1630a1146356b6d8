// A client of one table of rows, in one of the systems that are compared.
#ifndef KEELSON_BENCH_ROWS_ROW_CLIENT_H_
#define KEELSON_BENCH_ROWS_ROW_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rows/row_batches.h"
#include "bench/rows/row_scenario.h"

namespace keelson::bench {

// Used by one thread. Rows become a matrix of float32 in memory, in the order of the ids. Errors of
// the calls.
class RowClient {
 public:
  virtual ~RowClient() = default;

  // Creates the rows [0, rows).
  virtual absl::Status Fill(uint64_t rows) = 0;

  virtual absl::Status Pull(const RowBatch& batch) = 0;
  // What comes before Push, without its clock.
  virtual absl::Status BeforePush(const RowBatch& batch) = 0;
  // Updates the rows of the batch by gradients.
  virtual absl::Status Push(const RowBatch& batch) = 0;
  // Updates the rows that were fetched last, and fetches those of `next`, with the update.
  virtual absl::Status PushPull(const RowBatch& next) = 0;
};

// The table of a client, and who it is.
struct RowTarget {
  RowSystem system = RowSystem::kKeelson;
  std::string address;
  int64_t dim = 16;
  int64_t expire_after_steps = 0;  // of Keelson's; 0: never
  // The number of this client among all that the server ever has, below kMostClients.
  int client = 0;
};

// Errors of the connection.
absl::StatusOr<std::unique_ptr<RowClient>> MakeRowClient(const RowTarget& target);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_ROW_CLIENT_H_
