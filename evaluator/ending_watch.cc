#include "evaluator/ending_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {

absl::StatusOr<Ending> EndingWatch::Look(const ChiefLink* link) {
  Ending ending;
  if (link != nullptr) {
    const JobView view = link->View();
    RETURN_IF_ERROR(view.error);
    ending.done = ending.dismissed = view.phase == v1::DONE;
    ending.final_step = view.final_step;
    if (ending.dismissed || view.reachable) return ending;
  }
  const absl::StatusOr<std::optional<DoneMarker>> marker = directory_->ReadDoneMarker();
  // The marker was just removed, by a chief that continues the job.
  if (marker.status().code() == absl::StatusCode::kNotFound) return ending;
  RETURN_IF_ERROR(marker.status());
  if (!marker->has_value()) return ending;
  if ((*marker)->config_hash == config_hash_) {
    ending.done = true;
    ending.final_step = (*marker)->step;
  } else {
    ending.foreign_hash = (*marker)->config_hash;
  }
  return ending;
}

absl::Status EndingWatch::CheckForeignMarker(const Ending& ending,
                                             const std::vector<SnapshotInfo>& snapshots,
                                             size_t records) {
  if (!ending.foreign_hash.has_value()) {
    unchanged_.Reset();
    return absl::OkStatus();
  }
  Progress progress;
  progress.foreign_hash = *ending.foreign_hash;
  for (const SnapshotInfo& snapshot : snapshots) progress.snapshots.push_back(snapshot.step);
  progress.records = records;
  if (progress != last_progress_ || !unchanged_.begun()) {
    unchanged_.Reset();
    last_progress_ = std::move(progress);
  }
  if (!unchanged_.IsOver()) return absl::OkStatus();
  return ConfigMismatch(
      config_hash_, *ending.foreign_hash,
      absl::StrCat("the finished job in ", directory_->model_dir(), " (no chief answers)"));
}

}  // namespace keelson
