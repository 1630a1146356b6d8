// Jobs with a table whose arithmetic can be checked: every push moves the row of each of its ids by
// exactly kCountedRowStep, up or down, whatever the values are. So a snapshot says how often each
// row was updated, twice over: by its own count, and by its value.
//
// A linear model whose labels are far away: no gradient changes its sign, and the server clips each
// element to the same size.
#ifndef KEELSON_TESTS_SUPPORT_COUNTED_ROWS_H_
#define KEELSON_TESTS_SUPPORT_COUNTED_ROWS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace keelson {

inline constexpr int kCountedRecords = 640;
inline constexpr int kCountedBatch = 16;
// Every record has the ids below this, and one of its own.
inline constexpr uint64_t kCommonIds = 40;
// learning_rate.base * optimizer.clip_value.
inline constexpr double kCountedRowStep = 0x1p-24;

struct CountedRowsJob {
  // Text in OptimizerConfig, beside others.
  std::string optimizer = "sgd {} clip_value: 0.0009765625";
  // Text of a ConsistencyMode; empty: asynchronous.
  std::string mode = "";
  // Text in the TableConfig, beside others.
  std::string limits = "";
  // Each record comes at the same place of each epoch.
  bool sequential = false;
  int64_t epochs = 5;
  int64_t max_steps = 0;  // instead of epochs, where it is not 0
  int64_t save_steps = 40;
  int64_t keep_max = 5;
  int64_t full_every = 0;
};

// The text of a TrainConfig with the table "weights" and no variables; it names a file of records
// that is written here.
std::string CountedRowsConfig(const CountedRowsJob& job);

struct CountedRow {
  float value = 0;
  uint32_t updates = 0;
  uint32_t last_step = 0;
};
using CountedRows = std::map<uint64_t, CountedRow>;  // by id

// The rows of a snapshot. The test fails unless all checksums are right and all columns have the
// same keys, ascending in each partition.
CountedRows ReadCountedRows(const std::string& prefix);

// Whether rows that every push has were updated equally often in each shard. They may differ where
// they can expire while several workers push, one of which is ahead of the others.
enum class CommonRows { kAgree, kMayDiffer };

// The test fails unless each row of a snapshot has moved once for each of its updates, and those
// that every push has were updated equally often in each shard, and no more often than the shard
// had counted pushes. (It may have counted more: a shard that is restored goes on from the highest
// count of all.)
void CheckRowCounts(const std::string& prefix, CommonRows common = CommonRows::kAgree);
// By shard, how often rows that every push has were updated, of which one is told; 0: there is
// none.
std::vector<int64_t> CommonRowUpdates(const std::string& prefix);
// The same of all snapshots in a model directory, of which there is one at least.
void CheckAllRowCounts(const std::string& model_dir, CommonRows common = CommonRows::kAgree);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTED_ROWS_H_
