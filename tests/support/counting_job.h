// A job whose arithmetic can be checked: every push moves each counting element by exactly
// kCountedStep, up or down, whatever the values are. So a snapshot says how often each block was
// updated, twice over: by its own count, and by its values.
//
// A linear model of one input (the mean of the picture) whose targets are far away: no gradient
// changes its sign, and the server clips each element to the same size. Up to 2^20 steps the counts
// are exact and the targets stay far away.
#ifndef KEELSON_TESTS_SUPPORT_COUNTING_JOB_H_
#define KEELSON_TESTS_SUPPORT_COUNTING_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace keelson {

struct CountingJobOptions {
  int64_t max_steps = 1000;
  int64_t save_steps = 100;
  int64_t keep_max = 5;
  // Text of a ConsistencyMode; empty: asynchronous.
  std::string mode = "";
};

// The text of a TrainConfig, for at most three servers.
std::string CountingJobConfig(const CountingJobOptions& options);

// The counts in a snapshot.
struct CountedSnapshot {
  int64_t global_step = 0;
  // By shard: updates of each of its blocks.
  std::vector<int64_t> updates;
};

// Verifies all checksums of a snapshot of a counting job, and that each shard was cut at one
// instant: all of its blocks have the same number of updates, the shard has counted as many pushes,
// and the values say the same. DATA_LOSS: something disagrees; the text has what, expected and
// found.
absl::StatusOr<CountedSnapshot> ReadCountedSnapshot(const std::string& prefix);

// Reads the newest snapshot in a model directory.
absl::StatusOr<CountedSnapshot> ReadLatestCounted(const std::string& model_dir);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTING_JOB_H_
