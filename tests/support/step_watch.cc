#include "tests/support/step_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"
#include "core/client/services/grpc_parameter_control.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(10);
constexpr absl::Duration kProgressLimit = absl::Seconds(60);
// The speed before an event is that of so much time.
constexpr absl::Duration kSpeedTime = absl::Seconds(1);
// A burst of steps is at least this much time at the old speed, and at least this many steps.
constexpr absl::Duration kSeveralStepsTime = absl::Milliseconds(300);
constexpr int64_t kSeveralSteps = 3;
// The fraction of the old speed that counts as full speed.
constexpr double kFullSpeed = 0.8;

}  // namespace

StepWatch::StepWatch(const std::string& server_address)
    : thread_([this, server_address] { Run(server_address); }) {}

StepWatch::~StepWatch() {
  stop_.Raise();
  thread_.join();
}

void StepWatch::Run(const std::string& address) {
  const auto server = ConnectParameterControl("ps", address, Credentials());
  do {
    v1::ShardStatus status;
    if (!server->GetStatus({}, &status).ok() || status.state() != v1::ShardStatus::READY) continue;
    MutexLock lock(&mu_);
    samples_.push_back({absl::Now(), status.shard_step(), status.store_id()});
    sampled_.NotifyAll();
  } while (!stop_.WaitFor(kPause));
}

int64_t StepWatch::step() const {
  MutexLock lock(&mu_);
  return samples_.empty() ? -1 : samples_.back().step;
}

void StepWatch::WaitForStep(int64_t step) const {
  const absl::Time deadline = absl::Now() + kProgressLimit;
  MutexLock lock(&mu_);
  while (samples_.empty() || samples_.back().step < step ||
         samples_.back().time - samples_.front().time < kSpeedTime) {
    ASSERT_LT(absl::Now(), deadline) << "step " << step;
    sampled_.WaitFor(&mu_, absl::Seconds(1));
  }
}

double StepWatch::StepsPerSecondBefore(absl::Time time) const {
  const auto end = std::find_if(samples_.begin(), samples_.end(),
                                [&](const Sample& sample) { return sample.time > time; });
  const auto begin = std::find_if(
      samples_.begin(), end, [&](const Sample& sample) { return sample.time > time - kSpeedTime; });
  if (end - begin < 2) return 0;
  return static_cast<double>((end - 1)->step - begin->step) /
         absl::ToDoubleSeconds((end - 1)->time - begin->time);
}

absl::Time StepWatch::FullSpeedSince(absl::Time event) const {
  const double before = StepsPerSecondBefore(event);
  if (before <= 0) return absl::InfiniteFuture();
  const auto steps =
      std::max(kSeveralSteps,
               static_cast<int64_t>(std::ceil(before * absl::ToDoubleSeconds(kSeveralStepsTime))));
  const absl::Duration longest = absl::Seconds(static_cast<double>(steps) / (kFullSpeed * before));
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (samples_[i].time < event) continue;
    size_t j = i;
    while (j < samples_.size() && samples_[j].step < samples_[i].step + steps) ++j;
    if (j == samples_.size()) break;
    if (samples_[j].time - samples_[i].time > longest) continue;
    while (samples_[i].step >= samples_[i + 1].step) ++i;
    return samples_[i + 1].time;
  }
  return absl::InfiniteFuture();
}

absl::Duration StepWatch::WaitForFullSpeed(absl::Time event, absl::Duration limit) const {
  const absl::Time deadline = absl::Now() + limit;
  MutexLock lock(&mu_);
  while (true) {
    const absl::Time since = FullSpeedSince(event);
    if (since != absl::InfiniteFuture()) return since - event;
    if (absl::Now() >= deadline) {
      ADD_FAILURE() << "not at full speed within " << limit << "; " << StepsPerSecondBefore(event)
                    << " steps/s before, " << StepsPerSecondBefore(absl::Now()) << " now";
      return absl::InfiniteDuration();
    }
    sampled_.WaitFor(&mu_, absl::Milliseconds(100));
  }
}

absl::Duration StepWatch::LongestPauseSince(absl::Time event) const {
  MutexLock lock(&mu_);
  absl::Duration longest;
  absl::Time advanced = event;
  for (size_t i = 1; i < samples_.size(); ++i) {
    if (samples_[i].time < event || samples_[i].step == samples_[i - 1].step) continue;
    longest = std::max(longest, samples_[i].time - advanced);
    advanced = samples_[i].time;
  }
  return longest;
}

StepWatch::Setbacks StepWatch::setbacks() const {
  MutexLock lock(&mu_);
  Setbacks setbacks;
  for (size_t i = 1; i < samples_.size(); ++i) {
    const int64_t lost = samples_[i - 1].step - samples_[i].step;
    if (lost > 0) {
      ++setbacks.falls;
      setbacks.steps_lost += lost;
    }
    if (samples_[i].store_id != samples_[i - 1].store_id) ++setbacks.new_stores;
  }
  return setbacks;
}

}  // namespace keelson
