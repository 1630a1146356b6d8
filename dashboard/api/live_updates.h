// Sends changes of the runs as server-sent events.
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

// Thread-safe. Streams must be destroyed before it.
class LiveUpdates {
 public:
  // In this time at most one event of a kind is sent per run.
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // Both outlive this.
  LiveUpdates(const RunSet* runs, const Clock* clock) : runs_(runs), clock_(clock) {}

  // Opens a stream of changes in these runs (ids; none: all runs, including later ones) from now
  // on: docs/dashboard-api.md, "Live updates". A stream keeps no queue: it compares the state that
  // it has sent with the present one, so a slow reader gets the newest state and skips those
  // between.
  std::shared_ptr<EventSource> Open(std::vector<std::string> run_ids);

  // Notifies the streams that runs may have changed.
  void Notify();
  // Ends the streams.
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

// Has a thread that reads the runs' files, and notifies the streams.
class RunPoller {
 public:
  // Both outlive the poller.
  RunPoller(RunSet* runs, LiveUpdates* updates, absl::Duration interval = absl::Milliseconds(500));
  ~RunPoller();

  // Everything that was there at the start has been read.
  bool loaded() const;

 private:
  void Loop();
  // Calls RunSet::Poll. An exception (out of memory) is logged the first time, and counts as
  // nothing more to read.
  bool PollRuns();

  RunSet* const runs_;
  LiveUpdates* const updates_;
  const absl::Duration interval_;
  StopSignal stop_;
  StopSignal loaded_;
  // Used by the thread.
  bool failed_ = false;
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_LIVE_UPDATES_H_
