#include "tests/support/counted_rounds.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "chief/coordination/record_set.h"

namespace keelson {
namespace {

// By contribution. Any four of them have another sum than these four. Exact as float32 for 2^24 /
// (156 * 3) rounds.
constexpr std::array<float, 4> kParts = {1, 5, 25, 125};
constexpr float kPartsTogether = 156;
constexpr int64_t kContributions = kParts.size();

// Successive attempts differ.
float FactorOf(uint32_t attempt) { return static_cast<float>(1 + attempt % 3); }

}  // namespace

CountedRounds::CountedRounds() : rounds_(kContributions) {
  MutexLock lock(&mu_);
  Open();
}

void CountedRounds::Open() {
  std::vector<RecordRange> contributions;
  for (int64_t c = 0; c < kContributions; ++c) contributions.push_back({0, c, c + 1});
  rounds_.Open(committed_, ++attempts_, std::move(contributions));
  changed_.NotifyAll();
}

void CountedRounds::Restart() {
  ++given_up_;
  rounds_.Restart(++attempts_);
  changed_.NotifyAll();
}

void CountedRounds::Join(uint64_t client) {
  MutexLock lock(&mu_);
  if (!dead_.contains(client)) clients_.insert(client);
  changed_.NotifyAll();
}

void CountedRounds::NoteDead(uint64_t client) {
  MutexLock lock(&mu_);
  clients_.erase(client);
  dead_.insert(client);
  changed_.NotifyAll();
  if (!rounds_.Lose(client)) Restart();
}

std::optional<CountedStep> CountedRounds::NextStep(uint64_t client) {
  MutexLock lock(&mu_);
  while (!ended_ && !dead_.contains(client) && (rounds_.open() || !finishing_)) {
    const uint64_t lease = leases_ + 1;
    // One that works before it has joined waits.
    const std::optional<RecordRange> part =
        clients_.contains(client)
            ? rounds_.Grant(client, lease, static_cast<int64_t>(clients_.size()))
            : std::nullopt;
    if (part.has_value()) {
      leases_ = lease;
      CountedStep step;
      step.step = rounds_.step();
      // The mean of the contributions is a sum of parts.
      step.gradient = -static_cast<float>(kContributions) *
                      kParts[static_cast<size_t>(part->begin)] * FactorOf(rounds_.attempt());
      step.aggregation = Aggregation{rounds_.step(), rounds_.attempt(), 1};
      step.lease = lease;
      step.values = values_;
      return step;
    }
    changed_.Wait(&mu_);
  }
  return std::nullopt;
}

bool CountedRounds::Holds(uint64_t client, const CountedStep& step) const {
  MutexLock lock(&mu_);
  return rounds_.Holds(client, step.lease);
}

void CountedRounds::NoteEnd(uint64_t client, const CountedStep& step, const PushResult& result) {
  MutexLock lock(&mu_);
  if (result.refused) {
    if (rounds_.Refuse(client, step.lease, step.aggregation->attempt)) Restart();
    return;
  }
  rounds_.Stage(client, step.lease);
  changed_.NotifyAll();
}

std::optional<SyncRounds::Round> CountedRounds::WaitForStaged() const {
  MutexLock lock(&mu_);
  while (!ended_ && !rounds_.Staged().has_value()) changed_.Wait(&mu_);
  return ended_ ? std::nullopt : rounds_.Staged();
}

void CountedRounds::NoteCommitted(const SyncRounds::Round& round) {
  MutexLock lock(&mu_);
  if (rounds_.Staged() != round) return;  // told again
  values_ += kPartsTogether * FactorOf(round.attempt);
  ++committed_;
  rounds_.Close();
  changed_.NotifyAll();
  if (!finishing_) Open();
}

void CountedRounds::NoteFailed(const SyncRounds::Round&) {
  MutexLock lock(&mu_);
  Restart();
}

void CountedRounds::Finish() {
  MutexLock lock(&mu_);
  finishing_ = true;
  changed_.NotifyAll();
}

bool CountedRounds::finished() const {
  MutexLock lock(&mu_);
  return finishing_ && !rounds_.open();
}

void CountedRounds::End() {
  MutexLock lock(&mu_);
  ended_ = true;
  changed_.NotifyAll();
}

int64_t CountedRounds::committed() const {
  MutexLock lock(&mu_);
  return committed_;
}

float CountedRounds::values() const {
  MutexLock lock(&mu_);
  return values_;
}

int64_t CountedRounds::given_up() const {
  MutexLock lock(&mu_);
  return given_up_;
}

}  // namespace keelson
