#include "bench/chief/measurement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/chief/load.h"
#include "bench/meter.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kTrainLimit = absl::Seconds(60);
constexpr absl::Duration kJoinLimit = absl::Minutes(2);
// Longer than the timeout of a call.
constexpr absl::Duration kQuietLimit = absl::Seconds(40);
constexpr absl::Duration kStatusPause = absl::Milliseconds(20);
constexpr double kWarmUpSeconds = 0.5;
constexpr double kJoinsPerSecond = 500;
// An idle chief is measured too, with workers that say nothing.
constexpr int kLongLeaseSeconds = 3600;
// A status has a line for each worker: asked for more often it would be all that is measured.
constexpr double kStatusPerSecond = 10;
constexpr double kStatusPerSecondBeside = 2;

struct Measured {
  double cpu_seconds = 0;
  AllCounts counts;
};

double PercentileOf(const CallCounts& counts, double q) {
  return counts.latencies.PercentileMicroseconds(q);
}

CallTimes TimesOf(const CallCounts& counts) {
  return {counts.wanted, counts.answered, counts.failed, PercentileOf(counts, 0.5),
          PercentileOf(counts, 0.99)};
}

void AddCounts(const AllCounts& from, AllCounts* to) {
  for (size_t kind = 0; kind < kCallKinds; ++kind) {
    (*to)[kind].wanted += from[kind].wanted;
    (*to)[kind].answered += from[kind].answered;
    (*to)[kind].failed += from[kind].failed;
    (*to)[kind].latencies.Add(from[kind].latencies);
  }
}

class Measurement {
 public:
  Measurement(const MeasureOptions& options, Job* job) : options_(options), job_(*job) {}

  absl::StatusOr<AsynchronousResult> Asynchronous() {
    AsynchronousResult result;
    RETURN_IF_ERROR(MeasureJoin(&result));
    ASSIGN_OR_RETURN(result.idle_cores, MeasureIdle());
    ASSIGN_OR_RETURN(result.heartbeat, CostOf(CallKind::kHeartbeat, options_.calls_per_second));
    // Faster workers would be given more steps with each call.
    ASSIGN_OR_RETURN(result.acquire_work, CostOf(CallKind::kAcquireWork,
                                                 std::min(options_.calls_per_second,
                                                          workers() * options_.steps_per_second)));
    ASSIGN_OR_RETURN(result.job_status, CostOf(CallKind::kGetJobStatus, kStatusPerSecond));
    RETURN_IF_ERROR(MeasureWholeJob(&result));
    return result;
  }

  absl::StatusOr<SynchronousResult> Synchronous() {
    RETURN_IF_ERROR(JoinAll(&job_));
    SynchronousResult result;
    // Each worker asks once, and then again with each answer.
    job_.workers->AcquireWithoutPause(true);
    for (int w = 0; w < workers(); ++w) job_.workers->AcquireWork(w);
    Load load({StreamOf(CallKind::kHeartbeat, workers() * HeartbeatsPerSecond())}, options_.stop);
    load.Run(kWarmUpSeconds + options_.seconds / 2);
    job_.workers->TakeCounts();
    job_.workers->TakeRoundSeconds();
    const double before = job_.chief->CpuSeconds();
    load.Run(options_.seconds * options_.repeat);
    result.cores = (job_.chief->CpuSeconds() - before) / (options_.seconds * options_.repeat);
    result.memory = job_.chief->memory();
    std::vector<double> rounds = job_.workers->TakeRoundSeconds();
    for (double& round : rounds) round *= 1000;
    result.rounds = static_cast<int64_t>(rounds.size());
    result.round_ms = SpreadOf(std::move(rounds));
    result.heartbeat = TimesOf(job_.workers->TakeCounts()[IndexOf(CallKind::kHeartbeat)]);
    job_.workers->AcquireWithoutPause(false);
    RETURN_IF_ERROR(job_.chief->CheckRunning());
    return result;
  }

 private:
  int workers() const { return job_.workers->size(); }

  // The workers take turns.
  Stream StreamOf(CallKind kind, double per_second) {
    SimulatedWorkers* const workers = job_.workers.get();
    const auto turn = [workers](int64_t number) {
      return static_cast<int>(number % workers->size());
    };
    return {per_second, [=](int64_t number) {
              if (kind == CallKind::kHeartbeat) workers->Heartbeat(turn(number));
              if (kind == CallKind::kAcquireWork) workers->AcquireWork(turn(number));
              if (kind == CallKind::kGetJobStatus) workers->GetJobStatus(turn(number));
            }};
  }

  absl::Status MeasureJoin(AsynchronousResult* result) {
    const double before = job_.chief->CpuSeconds();
    const double begin = MonotonicSeconds();
    RETURN_IF_ERROR(JoinAll(&job_));
    result->join_seconds = MonotonicSeconds() - begin;
    result->join_cpu_us = (job_.chief->CpuSeconds() - before) * 1e6 / workers();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Measured>> MeasureLoad(const std::vector<Stream>& streams) {
    Load load(streams, options_.stop);
    load.Run(kWarmUpSeconds);
    job_.workers->TakeCounts();
    std::vector<Measured> runs;
    for (int i = 0; i < options_.repeat; ++i) {
      const double before = job_.chief->CpuSeconds();
      load.Run(options_.seconds);
      runs.push_back({job_.chief->CpuSeconds() - before, job_.workers->TakeCounts()});
    }
    if (!job_.workers->WaitUntilQuiet(kQuietLimit)) LogWarning("calls are still under way");
    RETURN_IF_ERROR(job_.chief->CheckRunning());
    return runs;
  }

  absl::StatusOr<Spread> MeasureIdle() {
    ASSIGN_OR_RETURN(const std::vector<Measured> runs, MeasureLoad({}));
    std::vector<double> cores;
    cores.reserve(runs.size());
    for (const Measured& run : runs) cores.push_back(run.cpu_seconds / options_.seconds);
    return SpreadOf(cores);
  }

  // What an idle chief does depends on the work that is leased, so it is measured again.
  absl::StatusOr<CallCost> CostOf(CallKind kind, double per_second) {
    ASSIGN_OR_RETURN(const Spread idle, MeasureIdle());
    ASSIGN_OR_RETURN(const std::vector<Measured> runs, MeasureLoad({StreamOf(kind, per_second)}));
    std::vector<double> cpu_us;
    AllCounts all;
    for (const Measured& run : runs) {
      AddCounts(run.counts, &all);
      const auto answered = static_cast<double>(run.counts[IndexOf(kind)].answered);
      const double cpu_seconds = run.cpu_seconds - idle.median * options_.seconds;
      if (answered > 0) cpu_us.push_back(cpu_seconds * 1e6 / answered);
    }
    const CallCounts& counts = all[IndexOf(kind)];
    return CallCost{SpreadOf(cpu_us), PercentileOf(counts, 0.5), PercentileOf(counts, 0.99)};
  }

  // How many a real worker sends.
  double HeartbeatsPerSecond() const {
    return std::min(options_.heartbeats_per_second,
                    1 / std::max(1e-3, job_.workers->wanted_heartbeat_seconds()));
  }

  absl::Status MeasureWholeJob(AsynchronousResult* result) {
    ASSIGN_OR_RETURN(
        const std::vector<Measured> runs,
        MeasureLoad({StreamOf(CallKind::kHeartbeat, workers() * HeartbeatsPerSecond()),
                     StreamOf(CallKind::kAcquireWork, workers() * options_.steps_per_second),
                     StreamOf(CallKind::kGetJobStatus, kStatusPerSecondBeside)}));
    std::vector<double> cores;
    AllCounts all;
    for (const Measured& run : runs) {
      cores.push_back(run.cpu_seconds / options_.seconds);
      AddCounts(run.counts, &all);
    }
    result->cores = SpreadOf(cores);
    const double seconds = options_.seconds * options_.repeat;
    for (const CallCounts& counts : all) {
      result->wanted_per_second += static_cast<double>(counts.wanted) / seconds;
      result->answered_per_second += static_cast<double>(counts.answered) / seconds;
    }
    result->calls["Heartbeat"] = TimesOf(all[IndexOf(CallKind::kHeartbeat)]);
    result->calls["AcquireWork"] = TimesOf(all[IndexOf(CallKind::kAcquireWork)]);
    result->calls["GetJobStatus"] = TimesOf(all[IndexOf(CallKind::kGetJobStatus)]);
    result->memory = job_.chief->memory();
    result->job_state_bytes = job_.chief->job_state_bytes();
    return absl::OkStatus();
  }

  const MeasureOptions& options_;
  Job& job_;
};

}  // namespace

absl::StatusOr<Job> StartJob(const ChiefProcess::Options& chief, int workers, int connections) {
  Job job;
  ASSIGN_OR_RETURN(job.chief, ChiefProcess::Start(chief));
  job.workers = std::make_unique<SimulatedWorkers>(
      SimulatedWorkers::Options{.workers = workers,
                                .connections = connections,
                                .chief_address = job.chief->address(),
                                .config_hash = job.chief->config_hash(),
                                .job_token = job.chief->job_token()});
  const absl::Time until = absl::Now() + kTrainLimit;
  while (job.workers->job_status().phase() != v1::TRAINING) {
    if (absl::Now() > until) return absl::DeadlineExceededError("the chief does not train");
    RETURN_IF_ERROR(job.chief->CheckRunning());
    job.workers->GetJobStatus(0);
    absl::SleepFor(kStatusPause);
  }
  return job;
}

absl::Status JoinAll(Job* job) {
  SimulatedWorkers* const workers = job->workers.get();
  Load joins({{kJoinsPerSecond,
               [workers](int64_t number) {
                 if (number < workers->size()) workers->Join(static_cast<int>(number));
               }}},
             job->chief->stop());
  joins.Run((workers->size() + 1) / kJoinsPerSecond);
  const absl::Time until = absl::Now() + kJoinLimit;
  while (workers->members() < workers->size()) {
    RETURN_IF_ERROR(job->chief->CheckRunning());
    if (absl::Now() > until) {
      return absl::DeadlineExceededError(absl::StrCat("only ", workers->members(), " of ",
                                                      workers->size(), " workers became members"));
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChiefResult> MeasureChief(int workers, const MeasureOptions& options) {
  ChiefResult result;
  result.workers = workers;
  result.servers = options.servers;
  const auto note_errors = [&](const Job& job) {
    for (const auto& [text, count] : job.workers->errors()) result.errors[text] += count;
  };
  ChiefProcess::Options chief = {.program = options.program,
                                 .servers = options.servers,
                                 .lease_seconds = kLongLeaseSeconds,
                                 .stop = options.stop};
  if (options.asynchronous) {
    LogInfo(workers, " workers, asynchronous");
    ASSIGN_OR_RETURN(Job job, StartJob(chief, workers, options.connections));
    ASSIGN_OR_RETURN(result.asynchronous, Measurement(options, &job).Asynchronous());
    note_errors(job);
  }
  if (options.synchronous) {
    LogInfo(workers, " workers, synchronous");
    chief.replicas_to_aggregate = workers;
    ASSIGN_OR_RETURN(Job job, StartJob(chief, workers, options.connections));
    ASSIGN_OR_RETURN(result.synchronous, Measurement(options, &job).Synchronous());
    note_errors(job);
  }
  return result;
}

}  // namespace keelson::bench
