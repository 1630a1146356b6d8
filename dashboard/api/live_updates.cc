#include "dashboard/api/live_updates.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/thread_without_signals.h"
#include "dashboard/api/run_view.h"
#include "dashboard/api/series_view.h"
#include "dashboard/runs/json.h"

namespace keelson {
namespace {

std::string FormatEvent(absl::string_view name, absl::string_view data) {
  return absl::StrCat("event: ", name, "\ndata: ", data, "\n\n");
}

// The state of a run that a stream has sent.
struct Told {
  uint64_t status = 0;
  uint64_t snapshots = 0;
  uint64_t series = 0;
  absl::Duration at = -absl::InfiniteDuration();
};

Told Everything(const Run& run) {
  Told told;
  run.Read([&](const RunData& data) {
    told.status = data.status_revision;
    told.snapshots = data.snapshots_revision;
    told.series = data.series_revision;
  });
  return told;
}

bool IsNews(const Run& run, const Told& told) {
  const Told now = Everything(run);
  return now.status != told.status || now.snapshots != told.snapshots || now.series != told.series;
}

// The events that bring `told` up to date.
std::string TellNews(const Run& run, Told* told) {
  std::string events;
  run.Read([&](const RunData& data) {
    if (data.status_revision != told->status) {
      events.append(FormatEvent("status", DumpJson(RunJson(run, data))));
      events.append(FormatEvent("cluster", DumpJson(ClusterJson(run, data))));
    }
    if (data.series_revision != told->series) {
      const std::string points = NewPointsJson(run, data, told->series);
      if (!points.empty()) events.append(FormatEvent("series", points));
    }
    if (data.snapshots_revision != told->snapshots) {
      events.append(FormatEvent("snapshots", DumpJson(SnapshotsJson(run, data))));
    }
    told->status = data.status_revision;
    told->snapshots = data.snapshots_revision;
    told->series = data.series_revision;
  });
  return events;
}

}  // namespace

class LiveStream : public EventSource {
 public:
  LiveStream(LiveUpdates* updates, std::vector<std::string> run_ids)
      : updates_(updates), run_ids_(std::move(run_ids)) {
    for (const std::shared_ptr<Run>& run : Runs()) told_[run->id()] = Everything(*run);
  }

  std::optional<std::string> Next(absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    while (true) {
      std::optional<std::string> events = Tell();
      if (!events.has_value() || !events->empty()) return events;
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return "";
      Wait(std::min(left, next_due_));
    }
  }

 private:
  std::vector<std::shared_ptr<Run>> Runs() const {
    if (run_ids_.empty()) return updates_->runs_->All();
    std::vector<std::shared_ptr<Run>> runs;
    for (const std::string& id : run_ids_) {
      std::shared_ptr<Run> run = updates_->runs_->Find(id);
      if (run != nullptr) runs.push_back(std::move(run));
    }
    return runs;
  }

  // The next events; nullopt at the end.
  std::optional<std::string> Tell() {
    {
      MutexLock lock(&updates_->mu_);
      if (updates_->closed_) return std::nullopt;
      round_ = updates_->round_;
    }
    if (!greeted_) {
      greeted_ = true;
      return FormatEvent("hello", DumpJson({{"time", ToSeconds(updates_->clock_->Now())}}));
    }
    const absl::Duration now = updates_->clock_->Monotonic();
    next_due_ = absl::InfiniteDuration();
    std::string events;
    for (const std::shared_ptr<Run>& run : Runs()) {
      Told& told = told_[run->id()];
      if (!IsNews(*run, told)) continue;
      const absl::Duration due = told.at + LiveUpdates::kInterval - now;
      if (due > absl::ZeroDuration()) {
        next_due_ = std::min(next_due_, due);
        continue;
      }
      told.at = now;
      events.append(TellNews(*run, &told));
    }
    return events;
  }

  void Wait(absl::Duration timeout) {
    MutexLock lock(&updates_->mu_);
    if (updates_->closed_ || updates_->round_ != round_) return;
    updates_->changed_.WaitFor(&updates_->mu_, timeout);
  }

  LiveUpdates* const updates_;
  const std::vector<std::string> run_ids_;
  std::map<std::string, Told> told_;  // by run's id
  bool greeted_ = false;
  // The round of LiveUpdates when the runs were read.
  uint64_t round_ = 0;
  absl::Duration next_due_ = absl::InfiniteDuration();
};

std::shared_ptr<EventSource> LiveUpdates::Open(std::vector<std::string> run_ids) {
  return std::make_shared<LiveStream>(this, std::move(run_ids));
}

void LiveUpdates::Notify() {
  MutexLock lock(&mu_);
  ++round_;
  changed_.NotifyAll();
}

void LiveUpdates::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
  changed_.NotifyAll();
}

RunPoller::RunPoller(RunSet* runs, LiveUpdates* updates, absl::Duration interval)
    : runs_(runs), updates_(updates), interval_(interval) {
  thread_ = ThreadWithoutSignals([this] { Loop(); });
}

RunPoller::~RunPoller() {
  stop_.Raise();
  thread_.join();
}

bool RunPoller::loaded() const { return loaded_.raised(); }

void RunPoller::Loop() {
  do {
    while (PollRuns()) {
      updates_->Notify();
      if (stop_.raised()) return;
    }
    loaded_.Raise();
    updates_->Notify();
  } while (!stop_.WaitFor(interval_));
}

bool RunPoller::PollRuns() {
  try {
    return runs_->Poll();
  } catch (const std::exception& error) {
    if (!failed_) LogError("reading the runs has failed, and is tried again: ", error.what());
    failed_ = true;
    return false;
  }
}

}  // namespace keelson
