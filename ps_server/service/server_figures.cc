#include "ps_server/service/server_figures.h"

#include <algorithm>

#include "ps_server/service/bulk_calls.h"

namespace keelson {
namespace {

size_t BucketOf(int64_t staleness) {
  const auto& bounds = StalenessHistogram::kBounds;
  return std::lower_bound(bounds.begin(), bounds.end(), staleness) - bounds.begin();
}

}  // namespace

void FigureCounter::CountPull(int64_t pulled_bytes) {
  Add(1, &pulls_);
  Add(pulled_bytes, &pulled_bytes_);
}

void FigureCounter::CountPush(const BulkRequest& request, const BulkResponse& response,
                              int64_t pushed_bytes, int64_t pulled_bytes) {
  Add(pushed_bytes, &pushed_bytes_);
  Add(pulled_bytes, &pulled_bytes_);
  if (response.duplicate_blocks > 0) {
    Add(1, &repeated_pushes_);
    Add(response.duplicate_blocks, &duplicate_blocks_);
  } else if (request.last_part) {
    Add(1, &pushes_);
    CountStaleness(request, response.staleness);
  }
}

void FigureCounter::CountStaleness(const BulkRequest& request, int64_t staleness) {
  const TaskKey key(request.role, request.task_index);
  MutexLock lock(&mu_);
  auto found = staleness_.find(key);
  if (found == staleness_.end()) {
    const absl::StatusOr<Task> task = CallerOf(request);
    if (!task.ok()) return;  // not a task of the job
    found = staleness_.emplace(key, StalenessHistogram{*task}).first;
  }
  ++found->second.counts[BucketOf(staleness)];
  found->second.sum += staleness;
}

void FigureCounter::CountSnapshot(int64_t bytes, absl::Duration duration, absl::Duration cut) {
  MutexLock lock(&mu_);
  ++snapshots_.snapshots;
  snapshots_.snapshot_bytes += bytes;
  snapshots_.snapshot_time += duration;
  snapshots_.cut_time += cut;
  snapshots_.longest_cut = std::max(snapshots_.longest_cut, cut);
}

void FigureCounter::CountFailedSnapshot() {
  MutexLock lock(&mu_);
  ++snapshots_.failed_snapshots;
}

ServerFigures FigureCounter::figures() const {
  ServerFigures figures;
  {
    MutexLock lock(&mu_);
    figures = snapshots_;
    for (const auto& [key, histogram] : staleness_) figures.staleness.push_back(histogram);
  }
  figures.pulls = pulls_;
  figures.pushes = pushes_;
  figures.committed_rounds = committed_rounds_;
  figures.pushed_bytes = pushed_bytes_;
  figures.pulled_bytes = pulled_bytes_;
  figures.repeated_pushes = repeated_pushes_;
  figures.duplicate_blocks = duplicate_blocks_;
  figures.refused_calls = refused_calls_;
  figures.outdated_pushes = outdated_pushes_;
  figures.calls_in_progress = calls_in_progress_;
  return figures;
}

}  // namespace keelson
