#include "bench/chief/lives.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/chief/load.h"
#include "bench/meter.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr double kSamples = 300;
constexpr double kShortestPause = 1;  // between two samples, in seconds
// A task whose process has said nothing for a second may be taken over.
constexpr double kSecondsUntilNext = 1.2;
constexpr double kChecksPerSecond = 100;

// Ends lives, and begins the next ones a while later.
class Lives {
 public:
  explicit Lives(SimulatedWorkers* workers) : workers_(workers) {}

  void End(int64_t number) {
    const int w = static_cast<int>(number % workers_->size());
    const bool with_leave = (number + number / workers_->size()) % 2 == 0;
    if (with_leave) {
      workers_->Leave(w);
    } else {
      workers_->Vanish(w);
    }
    next_.emplace_back(MonotonicSeconds() + kSecondsUntilNext, w);
  }

  void BeginThoseDue() {
    while (!next_.empty() && next_.front().first <= MonotonicSeconds()) {
      workers_->Join(next_.front().second);
      next_.pop_front();
    }
  }

 private:
  SimulatedWorkers* const workers_;
  std::deque<std::pair<double, int>> next_;  // when, and who; in order
};

}  // namespace

double BytesPerMembership(const std::vector<LifeSample>& samples) {
  const auto n = static_cast<double>(samples.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const LifeSample& sample : samples) {
    const auto memberships = static_cast<double>(sample.memberships);
    const auto bytes = static_cast<double>(sample.resident_bytes);
    x += memberships;
    y += bytes;
    xx += memberships * memberships;
    xy += memberships * bytes;
  }
  const double divisor = n * xx - x * x;
  return divisor > 0 ? (n * xy - x * y) / divisor : 0;
}

absl::StatusOr<LifeResult> MeasureLives(int workers, const MeasureOptions& options,
                                        const LifeOptions& life) {
  LogInfo(workers, " workers, each with ", life.lives, " lives of ", life.life_seconds, " s");
  ASSIGN_OR_RETURN(
      Job job,
      StartJob({.program = options.program, .servers = options.servers, .stop = options.stop},
               workers, options.connections));
  RETURN_IF_ERROR(JoinAll(&job));
  SimulatedWorkers* const simulated = job.workers.get();
  Lives lives(simulated);
  LifeResult result;
  result.workers = workers;
  result.life_seconds = life.life_seconds;
  const double begin = MonotonicSeconds();
  const double cpu_before = job.chief->CpuSeconds();
  const double seconds = life.life_seconds * life.lives;
  const auto sample = [&](int64_t) {
    const ChiefProcess::Memory memory = job.chief->memory();
    result.samples.push_back(
        {MonotonicSeconds() - begin, simulated->joined(), memory.resident_bytes, memory.threads});
  };
  const auto turn = [workers](int64_t number) { return static_cast<int>(number % workers); };
  Load load({{workers / life.life_seconds, [&](int64_t number) { lives.End(number); }},
             {kChecksPerSecond, [&](int64_t) { lives.BeginThoseDue(); }},
             {workers * options.heartbeats_per_second,
              [&](int64_t number) { simulated->Heartbeat(turn(number)); }},
             {workers * options.steps_per_second,
              [&](int64_t number) { simulated->AcquireWork(turn(number)); }},
             {1 / std::max(kShortestPause, seconds / kSamples), sample}},
            options.stop);
  load.Run(seconds);
  sample(0);
  RETURN_IF_ERROR(job.chief->CheckRunning());
  result.memberships = simulated->joined();
  result.cores = (job.chief->CpuSeconds() - cpu_before) / (MonotonicSeconds() - begin);
  const auto half = result.samples.begin() + static_cast<int64_t>(result.samples.size() / 2);
  result.bytes_per_membership = BytesPerMembership({half, result.samples.end()});
  result.errors = simulated->errors();
  return result;
}

}  // namespace keelson::bench
