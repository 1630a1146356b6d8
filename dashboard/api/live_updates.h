// Tells streams of server-sent events what is new in the runs.
#ifndef KEELSON_DASHBOARD_API_LIVE_UPDATES_H_
#define KEELSON_DASHBOARD_API_LIVE_UPDATES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/http/message.h"
#include "dashboard/runs/run_set.h"

namespace keelson {

// Thread-safe. Streams that were opened must be gone before it.
class LiveUpdates {
 public:
  // Of one kind of event of a run there is at most one in this time.
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // Both outlive this.
  LiveUpdates(const RunSet* runs, const Clock* clock) : runs_(runs), clock_(clock) {}

  // What is new in these runs (ids; none: all runs, also those that come later), from now on:
  // docs/dashboard-api.md, "Live updates". A stream keeps no queue: it compares what it has told
  // with what there is, so a slow reader gets the newest state and misses what lay between.
  std::shared_ptr<EventSource> Open(std::vector<std::string> run_ids);

  // There may be something new.
  void Notify();
  // Streams end.
  void Close();

 private:
  friend class LiveStream;

  const RunSet* const runs_;
  const Clock* const clock_;
  mutable Mutex mu_;
  CondVar changed_;
  uint64_t round_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// Has a thread that reads the runs' files, and tells the streams.
class RunPoller {
 public:
  // Both outlive the poller.
  RunPoller(RunSet* runs, LiveUpdates* updates, absl::Duration interval = absl::Milliseconds(500));
  ~RunPoller();

  // Everything that was there at the start has been read.
  bool loaded() const;

 private:
  void Loop();
  // RunSet::Poll. An exception (no memory) is logged, the first time, and there is no more to read.
  bool PollRuns();

  RunSet* const runs_;
  LiveUpdates* const updates_;
  const absl::Duration interval_;
  StopSignal stop_;
  StopSignal loaded_;
  // Of the thread.
  bool failed_ = false;
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_LIVE_UPDATES_H_
