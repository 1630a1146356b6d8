// What a chief costs with so many workers: processor time of its calls, how long they take, memory,
// threads, and the time of a synchronous round.
#ifndef KEELSON_BENCH_CHIEF_MEASUREMENT_H_
#define KEELSON_BENCH_CHIEF_MEASUREMENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/chief/chief_process.h"
#include "bench/chief/simulated_workers.h"
#include "bench/statistics.h"
#include "core/base/stop_signal.h"

namespace keelson::bench {

struct MeasureOptions {
  std::string program;  // path of the chief
  int servers = 100;
  int connections = 32;
  // How long each load is measured, and how many times.
  double seconds = 3;
  int repeat = 3;
  // Calls a second where one kind of call is measured by itself.
  double calls_per_second = 500;
  // What each worker does in the load of a whole job.
  double steps_per_second = 1;
  double heartbeats_per_second = 4;
  bool asynchronous = true;
  bool synchronous = true;
  // Ends a measurement with CANCELLED. Outlives it; null: one that is never raised.
  const StopSignal* stop = nullptr;
};

// Calls of one kind by themselves.
struct CallCost {
  Spread cpu_us;  // processor time of the chief for one call, without that of an idle chief
  double p50_us = 0;
  double p99_us = 0;
};

// The calls of one kind beside those of others.
struct CallTimes {
  int64_t wanted = 0;
  int64_t answered = 0;
  int64_t failed = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// Workers that all register, and then do a step a second.
struct AsynchronousResult {
  double join_seconds = 0;  // until all are members
  double join_cpu_us = 0;   // of the chief, for one worker
  Spread idle_cores;        // of the chief when no worker calls
  CallCost heartbeat;
  CallCost acquire_work;
  CallCost job_status;
  // The load of the whole job.
  Spread cores;
  double wanted_per_second = 0;
  double answered_per_second = 0;
  std::map<std::string, CallTimes> calls;  // by name
  size_t job_state_bytes = 0;              // stored at each server once a second
  ChiefProcess::Memory memory;
};

// Workers that compute nothing, and so all wait for each round.
struct SynchronousResult {
  int64_t rounds = 0;
  Spread round_ms;
  double cores = 0;
  CallTimes heartbeat;
  ChiefProcess::Memory memory;
};

struct ChiefResult {
  int workers = 0;
  int servers = 0;
  std::optional<AsynchronousResult> asynchronous;
  std::optional<SynchronousResult> synchronous;
  std::map<std::string, int64_t> errors;  // failed calls, by the name of their status
};

// UNAVAILABLE: the chief cannot be started, or has ended. DEADLINE_EXCEEDED: the workers did not
// become members within two minutes.
absl::StatusOr<ChiefResult> MeasureChief(int workers, const MeasureOptions& options);

// A chief and its workers, none of which is a member.
struct Job {
  std::unique_ptr<ChiefProcess> chief;
  std::unique_ptr<SimulatedWorkers> workers;  // ends before the chief
};
// Waits until the chief trains.
absl::StatusOr<Job> StartJob(const ChiefProcess::Options& chief, int workers, int connections);
// Has all workers join.
absl::Status JoinAll(Job* job);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_MEASUREMENT_H_
