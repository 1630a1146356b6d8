#include "tests/soak/storm_sequence.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

// A drawn storm is waited for this long: about as long as others last.
constexpr absl::Duration kPatience = absl::Seconds(6);
constexpr absl::Duration kLookPause = absl::Milliseconds(50);
// Until a launcher starts a process again that has ended by itself, at most.
constexpr absl::Duration kRestartPause = absl::Milliseconds(500);

}  // namespace

void StormSequence::Draw() {
  if (waiting_.has_value()) return;
  int weights = 0;
  for (const Storm& storm : storms_) weights += storm.weight;
  int drawn = job_->Draw(1, weights);
  size_t i = 0;
  while (drawn > storms_[i].weight) drawn -= storms_[i++].weight;
  waiting_ = {i, absl::Now() + kPatience};
  BeginWaiting(absl::Now());
}

void StormSequence::BeginWaiting(absl::Time now) {
  if (!waiting_.has_value()) return;
  std::vector<BegunStorm> begun = storms_[waiting_->storm].begin(job_);
  if (begun.empty() && now < waiting_->until) return;
  Count& count = counts_[waiting_->storm];
  ++(begun.empty() ? count.dropped : count.begun);
  waiting_.reset();
  for (BegunStorm& storm : begun) Add(std::move(storm));
}

void StormSequence::Add(BegunStorm storm) {
  job_->Note(storm.what);
  const int most = static_cast<int>(absl::ToInt64Milliseconds(storm.longest));
  const absl::Time due = absl::Now() + absl::Milliseconds(job_->Draw(0, most));
  running_.push_back({std::move(storm), due});
}

void StormSequence::Tick(bool may_be_done) {
  See(absl::Now());
  BeginWaiting(absl::Now());
  for (const Task& task : job_->WatchProcesses(may_be_done)) {
    const int most = static_cast<int>(absl::ToInt64Milliseconds(kRestartPause));
    const absl::Time due = absl::Now() + absl::Milliseconds(job_->Draw(0, most));
    // To a program that starts, a model directory that is none is bad configuration.
    const auto over = [job = job_, due] { return absl::Now() >= due && !job->lost(); };
    Add({absl::StrCat("end of ", task.ToString()), kRestartPause, over,
         [job = job_, task] { job->StartAgain(task); }, nullptr});
  }
}

void StormSequence::See(absl::Time now) {
  std::erase_if(running_, [now](Running& running) {
    const BegunStorm& storm = running.storm;
    const auto over = [&] { return storm.over != nullptr ? storm.over() : now >= running.due; };
    if (!running.ended && over()) {
      storm.end();
      running.ended = true;
    }
    return running.ended && (storm.expected == nullptr || storm.expected());
  });
}

void StormSequence::EndAll(absl::Duration limit) {
  waiting_.reset();
  for (Running& running : running_) running.due = absl::InfinitePast();
  const absl::Time deadline = absl::Now() + limit;
  while (!running_.empty() && absl::Now() < deadline) {
    Tick(/*may_be_done=*/true);
    absl::SleepFor(kLookPause);
  }
  for (const Running& running : running_) {
    ADD_FAILURE() << running.storm.what << ": "
                  << (running.ended ? "what is expected afterwards has not happened"
                                    : "what ends it has not happened");
  }
}

std::string StormSequence::Counts() const {
  std::string text;
  for (size_t i = 0; i < counts_.size(); ++i) {
    absl::StrAppendFormat(&text, "%5d  %s (drawn in vain: %d)%s\n", counts_[i].begun,
                          storms_[i].name, counts_[i].dropped,
                          counts_[i].begun > 0 ? "" : ": never played");
  }
  return text;
}

}  // namespace keelson
