// The chief's memory over many short lives of workers, as on machines that are taken back.
#ifndef KEELSON_BENCH_CHIEF_LIVES_H_
#define KEELSON_BENCH_CHIEF_LIVES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/chief/measurement.h"

namespace keelson::bench {

struct LifeOptions {
  double life_seconds = 0;  // of each worker
  double lives = 168;       // of each worker: a week of lives of one hour
};

struct LifeSample {
  double seconds = 0;
  int64_t memberships = 0;  // so far
  int64_t resident_bytes = 0;
  int threads = 0;
};

struct LifeResult {
  int workers = 0;
  double life_seconds = 0;
  int64_t memberships = 0;
  double cores = 0;  // of the chief
  // By how much the memory grows with one more membership, over the second half.
  double bytes_per_membership = 0;
  std::vector<LifeSample> samples;
  std::map<std::string, int64_t> errors;  // failed calls, by the name of their status
};

// Half of the lives end with Leave, the others without a word. See MeasureChief for the errors.
absl::StatusOr<LifeResult> MeasureLives(int workers, const MeasureOptions& options,
                                        const LifeOptions& life);

// The slope of the line through the samples' memory over their memberships (least squares); 0
// for fewer than two.
double BytesPerMembership(const std::vector<LifeSample>& samples);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_LIVES_H_
