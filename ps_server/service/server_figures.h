// The counters of a parameter server, for metrics.
#ifndef KEELSON_PS_SERVER_SERVICE_SERVER_FIGURES_H_
#define KEELSON_PS_SERVER_SERVICE_SERVER_FIGURES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/cluster/task.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// The staleness of one task's pushes, over all of its incarnations.
struct StalenessHistogram {
  // Bucket i counts values that are at most kBounds[i] and above the bound before it; the last one
  // counts values above all bounds.
  static constexpr std::array<int64_t, 8> kBounds = {0, 1, 2, 4, 8, 16, 32, 64};

  Task task;
  std::array<int64_t, kBounds.size() + 1> counts{};
  int64_t sum = 0;
};

// Counts since the start of the process, unless stated otherwise.
struct ServerFigures {
  // Answered calls. A push of several messages counts with its last one, also in a round.
  int64_t pulls = 0;
  int64_t pushes = 0;
  int64_t committed_rounds = 0;
  // Sums of payloads.
  int64_t pushed_bytes = 0;
  int64_t pulled_bytes = 0;
  // Messages with blocks that had been applied before (their answer was lost), and the number of
  // those blocks.
  int64_t repeated_pushes = 0;
  int64_t duplicate_blocks = 0;
  // Calls of memberships that are over, and pushes for rounds that are over.
  int64_t refused_calls = 0;
  int64_t outdated_pushes = 0;
  // Bulk calls that are being executed at this moment.
  int64_t calls_in_progress = 0;

  // Snapshots; the times and bytes are sums.
  int64_t snapshots = 0;
  int64_t failed_snapshots = 0;
  int64_t snapshot_bytes = 0;
  absl::Duration snapshot_time;
  absl::Duration cut_time;
  absl::Duration longest_cut;

  // By task.
  std::vector<StalenessHistogram> staleness;
};

// Counts the ServerFigures. Thread-safe.
class FigureCounter {
 public:
  // A bulk call that is being executed.
  class CallScope {
   public:
    explicit CallScope(FigureCounter* counter) : counter_(counter) {
      counter_->calls_in_progress_.fetch_add(1, std::memory_order_relaxed);
    }
    ~CallScope() { counter_->calls_in_progress_.fetch_sub(1, std::memory_order_relaxed); }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    FigureCounter* const counter_;
  };

  void CountPull(int64_t pulled_bytes);
  void CountPush(const BulkRequest& request, const BulkResponse& response, int64_t pushed_bytes,
                 int64_t pulled_bytes);
  void CountRefusedCall() { Add(1, &refused_calls_); }
  void CountOutdatedPush() { Add(1, &outdated_pushes_); }
  void CountCommittedRound() { Add(1, &committed_rounds_); }
  void CountSnapshot(int64_t bytes, absl::Duration duration, absl::Duration cut);
  void CountFailedSnapshot();

  ServerFigures figures() const;

 private:
  // v1::Role and index.
  using TaskKey = std::pair<int, uint32_t>;
  using Counter = std::atomic<int64_t>;

  static void Add(int64_t n, Counter* counter) { counter->fetch_add(n, std::memory_order_relaxed); }
  void CountStaleness(const BulkRequest& request, int64_t staleness);

  Counter pulls_{0};
  Counter pushes_{0};
  Counter committed_rounds_{0};
  Counter pushed_bytes_{0};
  Counter pulled_bytes_{0};
  Counter repeated_pushes_{0};
  Counter duplicate_blocks_{0};
  Counter refused_calls_{0};
  Counter outdated_pushes_{0};
  Counter calls_in_progress_{0};

  mutable Mutex mu_;
  std::map<TaskKey, StalenessHistogram> staleness_ ABSL_GUARDED_BY(mu_);
  ServerFigures snapshots_ ABSL_GUARDED_BY(mu_);  // its other fields are unused
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SERVER_FIGURES_H_
