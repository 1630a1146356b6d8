// What a soak trains: a job whose arithmetic can be checked, of variables or of rows of a table.
#ifndef KEELSON_TESTS_SOAK_SOAK_MODEL_H_
#define KEELSON_TESTS_SOAK_SOAK_MODEL_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace keelson {

struct SoakModel {
  std::string name;
  std::string config;  // text of a TrainConfig
  // Verifies a snapshot, and returns the pushes that each shard has; empty where what is there does
  // not say. The test fails, or an error is returned, where the snapshot contradicts itself.
  std::function<absl::StatusOr<std::vector<int64_t>>(const std::string& prefix)> count_pushes;
};

// A counting job (counting_job.h), or one of counted rows (counted_rows.h), whose table may count
// ids before it admits them, have rows expire, and be written as deltas.
SoakModel DrawSoakModel(int64_t max_steps, std::mt19937_64* random);

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_SOAK_MODEL_H_
