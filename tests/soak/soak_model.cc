#include "tests/soak/soak_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/support/counted_rows.h"
#include "tests/support/counting_job.h"

namespace keelson {
namespace {

constexpr int64_t kSaveSteps = 100;
// At the pace of the links. A synchronous step takes two ways to hosts of shards and back.
constexpr int64_t kMostStepsPerSecond = kSoakTrainers * 50;
constexpr int64_t kMostRoundsPerSecond = 13;

int64_t StepsFor(SoakCluster cluster, absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  return cluster == SoakCluster::kServers ? std::max<int64_t>(2000, kMostStepsPerSecond * seconds)
                                          : std::max<int64_t>(500, kMostRoundsPerSecond * seconds);
}

SoakModel VariablesModel(SoakCluster cluster, absl::Duration duration) {
  CountingJobOptions options;
  options.max_steps = StepsFor(cluster, duration);
  options.save_steps = kSaveSteps;
  std::string placement;
  if (cluster == SoakCluster::kBoth) {
    options.mode = absl::StrCat("synchronous { replicas_to_aggregate: ", kSoakTrainers,
                                " total_replicas: ", kSoakTrainers, " }");
    placement = R"(placement { groups { variables: "hidden/kernel" on: PS }
                               groups { variables: "*" on: WORKERS } })";
  }
  const auto count = [](const std::string& prefix) -> absl::StatusOr<std::vector<int64_t>> {
    ASSIGN_OR_RETURN(const CountedSnapshot snapshot, ReadCountedSnapshot(prefix));
    return snapshot.updates;
  };
  return {absl::StrCat("variables on ", NameOf(cluster)), cluster, options.max_steps,
          absl::StrCat(CountingJobConfig(options), placement), count};
}

// An id comes in one of about 40 steps. Rows of ids that come in every step expire only where a
// server goes on with older ones, and then one by one, so that their updates say nothing of the
// shard's pushes.
SoakModel RowsModel(absl::Duration duration, std::mt19937_64* random) {
  const auto draw = [random](int choices) {
    return std::uniform_int_distribution<int>(0, choices - 1)(*random);
  };
  CountedRowsJob job;
  job.max_steps = StepsFor(SoakCluster::kServers, duration);
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
  return {absl::StrCat("rows, ", job.limits, "full_every: ", job.full_every), SoakCluster::kServers,
          job.max_steps, CountedRowsConfig(job), count};
}

}  // namespace

SoakModel DrawSoakModel(absl::Duration duration, std::mt19937_64* random) {
  switch (std::uniform_int_distribution<int>(0, 8)(*random)) {
    case 0:
    case 1:
      return VariablesModel(SoakCluster::kHosts, duration);
    case 2:
      return VariablesModel(SoakCluster::kBoth, duration);
    case 3:
    case 4:
    case 5:
      return VariablesModel(SoakCluster::kServers, duration);
    default:
      return RowsModel(duration, random);
  }
}

}  // namespace keelson
