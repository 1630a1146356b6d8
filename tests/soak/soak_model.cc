#include "tests/soak/soak_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/support/counted_rows.h"
#include "tests/support/counting_job.h"

namespace keelson {
namespace {

constexpr int64_t kSaveSteps = 100;

SoakModel VariablesModel(int64_t max_steps) {
  CountingJobOptions options;
  options.max_steps = max_steps;
  options.save_steps = kSaveSteps;
  const auto count = [](const std::string& prefix) -> absl::StatusOr<std::vector<int64_t>> {
    ASSIGN_OR_RETURN(const CountedSnapshot snapshot, ReadCountedSnapshot(prefix));
    return snapshot.updates;
  };
  return {"variables", CountingJobConfig(options), count};
}

// An id comes in one of about 40 steps. Rows of ids that come in every step expire only where a
// server goes on with older ones, and then one by one, so that their updates say nothing of the
// shard's pushes.
SoakModel RowsModel(int64_t max_steps, std::mt19937_64* random) {
  const auto draw = [random](int choices) {
    return std::uniform_int_distribution<int>(0, choices - 1)(*random);
  };
  CountedRowsJob job;
  job.max_steps = max_steps;
  job.save_steps = kSaveSteps;
  const int admit_after = draw(2) == 0 ? 0 : 3;
  const bool expires = draw(2) == 0;
  if (admit_after > 0) absl::StrAppend(&job.limits, "admit_after: ", admit_after, " ");
  if (expires) absl::StrAppend(&job.limits, "expire_after_steps: 45 ");
  job.full_every = draw(2) == 0 ? 0 : 4;
  const auto count = [=](const std::string& prefix) -> absl::StatusOr<std::vector<int64_t>> {
    CheckRowCounts(prefix, expires ? CommonRows::kMayDiffer : CommonRows::kAgree);
    if (expires) return std::vector<int64_t>();
    std::vector<int64_t> pushes = CommonRowUpdates(prefix);
    for (int64_t& of_shard : pushes) {
      if (admit_after > 0 && of_shard > 0) of_shard += admit_after - 1;
    }
    return pushes;
  };
  return {absl::StrCat("rows, ", job.limits, "full_every: ", job.full_every),
          CountedRowsConfig(job), count};
}

}  // namespace

SoakModel DrawSoakModel(int64_t max_steps, std::mt19937_64* random) {
  const bool rows = std::uniform_int_distribution<int>(0, 1)(*random) == 1;
  return rows ? RowsModel(max_steps, random) : VariablesModel(max_steps);
}

}  // namespace keelson
