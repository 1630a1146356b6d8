// What a soak trains: a job whose arithmetic can be checked, of variables or of rows of a table.
#ifndef KEELSON_TESTS_SOAK_SOAK_MODEL_H_
#define KEELSON_TESTS_SOAK_SOAK_MODEL_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/soak/soak_job.h"

namespace keelson {

struct SoakModel {
  std::string name;
  SoakCluster cluster = SoakCluster::kServers;
  int64_t max_steps = 0;
  std::string config;  // text of a TrainConfig
  // Verifies a snapshot, and returns the pushes that each shard has; empty where what is there does
  // not say. The test fails, or an error is returned, where the snapshot contradicts itself.
  std::function<absl::StatusOr<std::vector<int64_t>>(const std::string& prefix)> count_pushes;
};

// A counting job (counting_job.h), in one of three without parameter servers or with shards on
// workers, or one of counted rows (counted_rows.h), whose table may count ids before it admits
// them, have rows expire, and be written as deltas. At the pace of the links the job lasts longer
// than `duration`.
SoakModel DrawSoakModel(absl::Duration duration, std::mt19937_64* random);

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_SOAK_MODEL_H_
