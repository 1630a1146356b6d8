// A model directory with snapshots as two servers and a chief write them, for tests.
#ifndef KEELSON_CORE_TENSOR_FILES_SNAPSHOT_TESTING_H_
#define KEELSON_CORE_TENSOR_FILES_SNAPSHOT_TESTING_H_

#include <cstdint>
#include <string>

namespace keelson {

// Beside the job's and the shards' state: "dense/kernel" [4, 3] = first, first + 1, … in two
// slices, "dense/bias" [3] likewise, their slots "Momentum", "beta1_power" and "global_step".
void WriteTestSnapshot(const std::string& directory, int64_t step, float first = 0);

// A bundle that holds nothing but this string as the job's state.
void WriteJobStateBundle(const std::string& prefix, const std::string& bytes);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_SNAPSHOT_TESTING_H_
