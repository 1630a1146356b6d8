#include "tests/search/evaluation_rule.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "evaluator/snapshot_claims.h"

namespace keelson {
namespace {

// Between the claim of a snapshot and its evaluation an evaluator may be frozen for a while.
constexpr absl::Duration kPause = absl::Seconds(10);

}  // namespace

std::string EvaluationRule::CheckAcknowledged(int64_t step, uint64_t id) const {
  const auto snapshot = snapshots_.find(id);
  if (snapshot == snapshots_.end()) {
    return absl::StrCat("no snapshot of step ", step, " has the id ", FormatSnapshotId(id));
  }
  if (snapshot->second.step == step) return "";
  return absl::StrCat("the snapshot ", FormatSnapshotId(id), " is of step ", snapshot->second.step,
                      ", not ", step);
}

std::string EvaluationRule::Add(const EvaluationRecord& record) {
  const uint64_t id = record.snapshot_id;
  std::string wrong = CheckAcknowledged(record.step, id);
  if (!wrong.empty()) return wrong;
  const auto loss = record.metrics.find("loss");
  if (loss == record.metrics.end() || loss->second != snapshots_[id].loss) {
    return absl::StrCat("step ", record.step, " has the loss ",
                        loss == record.metrics.end() ? "none" : absl::StrCat(loss->second),
                        ", expected ", snapshots_[id].loss);
  }
  const absl::Time begun = record.wall_time - absl::Seconds(record.seconds);
  const auto [last, first] = begun_.try_emplace(id, begun);
  const absl::Duration between = begun - last->second;
  last->second = begun;
  if (first || trouble_ || between + kPause >= SnapshotClaim::kDuration) return "";
  return absl::StrCat("the snapshot of step ", record.step, " is scored again after ",
                      absl::FormatDuration(between));
}

std::string EvaluationRule::CheckEnd(absl::string_view metrics_file, int64_t step, uint64_t id) {
  std::optional<uint64_t> scored;
  for (const absl::string_view line : absl::StrSplit(metrics_file, '\n', absl::SkipEmpty())) {
    const std::optional<EvaluationRecord> record = ParseEvaluationRecord(line);
    if (!record.has_value()) return absl::StrCat("a line is no evaluation: ", line);
    if (record->step == step) scored = record->snapshot_id;
  }
  if (scored == id) return "";
  return absl::StrCat("the last snapshot, ", FormatSnapshotId(id), " of step ", step, ", has ",
                      scored.has_value()
                          ? absl::StrCat("the evaluation of ", FormatSnapshotId(*scored))
                          : "no evaluation");
}

}  // namespace keelson
