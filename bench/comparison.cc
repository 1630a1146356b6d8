#include "bench/comparison.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "bench/cluster.h"
#include "bench/models.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

// A contender with the runs it has had.
struct Entry {
  Contender contender;
  double least_seconds = 0;  // of a run
  std::vector<RunResult> runs;
};

// The entries of one comparison.
struct Entries {
  Entry raw_socket;
  Entry memory_copy;
  Entry empty_rpc;
  std::vector<Entry> scenarios;
  std::vector<std::pair<Direction, Entry>> baselines;

  const Entry& BaselineOf(Direction direction) const {
    return std::find_if(baselines.begin(), baselines.end(),
                        [&](const auto& entry) { return entry.first == direction; })
        ->second;
  }
};

// In what order a repetition runs them.
std::vector<Entry*> Round(Entries* entries) {
  std::vector<Entry*> round = {&entries->raw_socket, &entries->memory_copy, &entries->empty_rpc};
  for (size_t i = 0; i < entries->scenarios.size(); ++i) {
    if (i > 0 && i % 2 == 0) round.push_back(&entries->raw_socket);
    round.push_back(&entries->scenarios[i]);
  }
  for (auto& baseline : entries->baselines) round.push_back(&baseline.second);
  return round;
}

absl::StatusOr<Entries> StartAll(const std::vector<Scenario>& scenarios, const Limits& limits,
                                 Cluster* cluster) {
  Entries entries;
  entries.raw_socket.contender = limits.RawSocket();
  entries.memory_copy.contender = limits.MemoryCopy();
  entries.empty_rpc.contender = limits.Baseline("empty");
  for (const Direction direction : {Direction::kPush, Direction::kPull, Direction::kPushPull}) {
    const bool used = std::any_of(scenarios.begin(), scenarios.end(),
                                  [&](const Scenario& s) { return s.direction == direction; });
    if (used) entries.baselines.push_back({direction, {limits.Baseline(Name(direction)), 0, {}}});
  }
  for (const Scenario& scenario : scenarios) {
    ASSIGN_OR_RETURN(Contender contender, cluster->Start(scenario));
    entries.scenarios.push_back({std::move(contender), scenario.least_seconds, {}});
  }
  return entries;
}

Result ResultOf(const Scenario& scenario, const Entry& entry, const Entries& entries,
                const Cluster& cluster) {
  Result result;
  result.scenario = scenario;
  result.message_bytes = entry.contender.clients[0]->ready().at("message_bytes").get<int64_t>();
  result.measured = Summarize(entry.runs);
  result.baseline = Summarize(entries.BaselineOf(scenario.direction).runs);
  result.limits.raw_socket = Summarize(entries.raw_socket.runs);
  result.limits.memory_copy = Summarize(entries.memory_copy.runs);
  result.limits.empty_rpc = Summarize(entries.empty_rpc.runs);
  result.memory = cluster.MemoryOf(entry.contender, scenario);
  return result;
}

absl::Status WarmUp(const RunTiming& timing, const std::vector<Entry*>& round) {
  const RunTiming warm_up = {0, timing.warm_up_seconds};
  for (Entry* entry : round) RETURN_IF_ERROR(RunOnce(entry->contender, warm_up).status());
  return absl::OkStatus();
}

absl::Status RunRound(const RunTiming& timing, const std::vector<Entry*>& round) {
  for (Entry* entry : round) {
    RunTiming own = timing;
    own.seconds = std::max(own.seconds, entry->least_seconds);
    ASSIGN_OR_RETURN(RunResult run, RunOnce(entry->contender, own));
    entry->runs.push_back(std::move(run));
  }
  return absl::OkStatus();
}

double CpuOfFirst(const std::vector<Peer*>& peers) {
  return peers.empty() ? 0 : peers[0]->CpuSeconds();
}

}  // namespace

absl::Status Comparer::StartLimits(const Scenario& scenario) {
  const LimitOptions wanted = {options_.transport, scenario.message_bytes,
                               WalkedBytes(scenario.model, scenario.message_bytes),
                               options_.baseline_threads, options_.baseline_tuned};
  if (limits_ != nullptr && limits_->options() == wanted) return absl::OkStatus();
  limits_ = nullptr;
  ASSIGN_OR_RETURN(limits_, Limits::Start(wanted));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Result>> Comparer::Compare(const std::vector<Scenario>& scenarios) {
  RETURN_IF_ERROR(StartLimits(scenarios[0]));
  Cluster cluster(options_);
  ASSIGN_OR_RETURN(Entries entries, StartAll(scenarios, *limits_, &cluster));
  const std::vector<Entry*> round = Round(&entries);
  RETURN_IF_ERROR(WarmUp(options_.timing, round));
  for (int i = 0; i < options_.repeat; ++i) RETURN_IF_ERROR(RunRound(options_.timing, round));
  std::vector<Result> results;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    results.push_back(ResultOf(scenarios[i], entries.scenarios[i], entries, cluster));
  }
  return results;
}

absl::StatusOr<IdleCpu> Comparer::MeasureIdle(const Scenario& scenario, double seconds) {
  Cluster cluster(options_);
  ASSIGN_OR_RETURN(const Contender contender, cluster.Start(scenario));
  RETURN_IF_ERROR(RunOnce(contender, options_.timing).status());
  const double began = MonotonicSeconds();
  const double server = CpuOfFirst(contender.servers), worker = CpuOfFirst(contender.clients);
  absl::SleepFor(absl::Seconds(seconds));
  const double elapsed = MonotonicSeconds() - began;
  return IdleCpu{(CpuOfFirst(contender.servers) - server) / elapsed,
                 (CpuOfFirst(contender.clients) - worker) / elapsed};
}

}  // namespace keelson::bench
