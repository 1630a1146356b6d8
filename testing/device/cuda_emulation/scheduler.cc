// A real GPU may run independent work in any order, and a missing wait shows only in some of them.
// A random order per operation would stay close to the order of the calls, so a lane keeps a random
// priority for a while: then one stream runs far ahead of another, and work that is not waited for
// is as late as the dependencies allow. A seed reproduces the order; half of the seeds are eager.
#include "testing/device/cuda_emulation/scheduler.h"

#include <algorithm>
#include <utility>

namespace keelson::cuda_emulation {
namespace {

constexpr size_t kMostPending = 4096;

bool Ready(const Work& work) {
  return std::all_of(work.after.begin(), work.after.end(),
                     [](const WorkPointer& before) { return before->done; });
}

// The work that must be done for `target` and is not, including itself, sorted by address.
std::vector<const Work*> NeededBy(const Work* target) {
  std::vector<const Work*> found, open = {target};
  while (!open.empty()) {
    const Work* const work = open.back();
    open.pop_back();
    if (work->done) continue;
    const auto at = std::lower_bound(found.begin(), found.end(), work);
    if (at != found.end() && *at == work) continue;
    found.insert(at, work);
    for (const WorkPointer& before : work->after) open.push_back(before.get());
  }
  return found;
}

}  // namespace

Scheduler::Scheduler(uint64_t seed, std::function<void(Work*)> execute)
    : seed_(seed), execute_(std::move(execute)), random_(seed) {}

uint64_t Scheduler::Chance(uint64_t bound) { return seed_ == 0 ? 0 : random_() % bound; }

void Scheduler::Add(uint64_t lane, WorkPointer work) {
  work->number = added_++;
  Lane& queue = lanes_[lane];
  if (queue.work.empty()) queue.priority = random_();
  queue.work.push_back(std::move(work));
  ++pending_;
  const bool eager = seed_ != 0 && seed_ % 2 == 0;
  if (eager && Chance(8) == 0) {
    for (uint64_t n = Chance(16); n > 0 && RunOne(nullptr);) --n;
  }
  if (pending_ > kMostPending) RunAll();
}

void Scheduler::RunUntil(const WorkPointer& target) {
  // In half of the cases only needed work is done, so that work without a waiter is late.
  const bool only_needed = seed_ != 0 && Chance(2) == 0;
  if (only_needed) {
    const std::vector<const Work*> needed = NeededBy(target.get());
    while (!target->done && RunOne(&needed)) {
    }
  }
  while (!target->done && RunOne(nullptr)) {
  }
}

void Scheduler::Nudge(const WorkPointer& target) {
  if (target->done) return;
  const std::vector<const Work*> needed = NeededBy(target.get());
  for (uint64_t n = 1 + Chance(8); n > 0 && RunOne(&needed);) --n;
}

void Scheduler::RunAll() {
  while (RunOne(nullptr)) {
  }
}

bool Scheduler::RunOne(const std::vector<const Work*>* wanted) {
  Lane* const lane = Pick(wanted);
  if (lane == nullptr) return false;
  const WorkPointer work = std::move(lane->work.front());
  lane->work.pop_front();
  --pending_;
  if (Chance(4) == 0) lane->priority = random_();
  if (lane->work.empty()) {
    std::erase_if(lanes_, [lane](const auto& entry) { return &entry.second == lane; });
  }
  execute_(work.get());
  work->after.clear();
  return true;
}

bool Scheduler::Precedes(const Lane& a, const Lane& b) const {
  if (seed_ == 0) return a.work.front()->number < b.work.front()->number;
  return a.priority > b.priority;
}

Scheduler::Lane* Scheduler::Pick(const std::vector<const Work*>* wanted) {
  Lane* best = nullptr;
  for (auto& [number, lane] : lanes_) {
    const Work* const first = lane.work.front().get();
    if (best != nullptr && !Precedes(lane, *best)) continue;
    if (wanted != nullptr && !std::binary_search(wanted->begin(), wanted->end(), first)) continue;
    if (Ready(*first)) best = &lane;
  }
  return best;
}

}  // namespace keelson::cuda_emulation
