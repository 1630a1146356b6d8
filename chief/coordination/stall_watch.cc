#include "chief/coordination/stall_watch.h"

#include <algorithm>

namespace keelson {
namespace {

constexpr size_t kSamples = 31;

}  // namespace

void StallWatch::NoteSteps(uint64_t incarnation, int64_t steps) {
  if (steps <= 0) return;
  const auto found = workers_.find(incarnation);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.steps += steps;
  const absl::Duration now = clock_->Monotonic();
  if (!worker.owing_since.has_value()) return;
  worker.newest.push_back((now - *worker.owing_since) / steps);
  if (worker.newest.size() > kSamples) worker.newest.pop_front();
  worker.owing_since = now;
}

void StallWatch::Excuse() {
  for (auto& [incarnation, worker] : workers_) {
    if (worker.owing_since.has_value()) worker.owing_since = clock_->Monotonic();
  }
}

std::vector<StallWatch::Stalled> StallWatch::Look(const std::set<uint64_t>& owing) {
  for (auto& [incarnation, worker] : workers_) {
    if (!owing.contains(incarnation)) worker.owing_since.reset();
  }
  const absl::Duration now = clock_->Monotonic();
  std::vector<Stalled> stalled;
  for (const uint64_t incarnation : owing) {
    const auto found = workers_.find(incarnation);
    if (found == workers_.end()) continue;
    Worker& worker = found->second;
    if (!worker.owing_since.has_value()) worker.owing_since = now;
    const absl::Duration since = now - *worker.owing_since;
    const absl::Duration bound = BoundOf(worker);
    if (since > bound) stalled.push_back({incarnation, since, bound});
  }
  return stalled;
}

absl::Duration StallWatch::BoundOf(const Worker& worker) {
  if (worker.steps == 0) return std::max(kFirstStep, worker.own_bound);
  absl::Duration median;
  if (!worker.newest.empty()) {
    std::vector<absl::Duration> sorted(worker.newest.begin(), worker.newest.end());
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    median = sorted[sorted.size() / 2];
  }
  return std::max({kMedians * median, kShortest, worker.own_bound});
}

}  // namespace keelson
