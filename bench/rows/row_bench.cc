#include "bench/rows/row_bench.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/limits.h"
#include "bench/meter.h"
#include "bench/rows/row_cluster.h"
#include "bench/rows/row_expiry.h"
#include "bench/rows/row_roles.h"
#include "bench/rows/row_snapshot.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr int64_t kSocketMessageBytes = 4 << 20;
constexpr int64_t kSocketMemoryBytes = 64 << 20;

RowRates RatesOf(const std::vector<RunResult>& runs, bool knows_cpu) {
  std::vector<double> rows, client_cpu, server_cpu;
  LatencyHistogram latencies;
  for (const RunResult& run : runs) {
    rows.push_back(MegaRows(run));
    if (knows_cpu) {
      client_cpu.push_back(run.client_cpu / rows.back());
      server_cpu.push_back(run.server_cpu / rows.back());
    }
    latencies.Add(run.report.latencies);
  }
  return {SpreadOf(rows), SpreadOf(client_cpu), SpreadOf(server_cpu),
          latencies.PercentileMicroseconds(0.5) / 1e3};
}

Spread RatiosOf(const std::vector<RunResult>& runs, const std::vector<RunResult>& others) {
  std::vector<double> ratios;
  for (size_t i = 0; i < runs.size(); ++i) ratios.push_back(runs[i].Calls() / others[i].Calls());
  return SpreadOf(ratios);
}

// Scenarios of one dimension, in turn with what they are compared with.
class RowComparison {
 public:
  RowComparison(const RowBenchOptions& options, std::vector<RowScenario> scenarios)
      : options_(options), scenarios_(std::move(scenarios)) {}

  // Null: without it.
  absl::StatusOr<std::vector<RowResult>> Run(RowCluster* own, RowCluster* redis) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Limits> limits,
                     Limits::Start({Transport::kTcp, kSocketMessageBytes, kSocketMemoryBytes}));
    Entry socket;
    socket.contender = limits->RawSocket();
    std::vector<Entry> owns(scenarios_.size()), others(scenarios_.size());
    for (size_t i = 0; i < scenarios_.size(); ++i) {
      ASSIGN_OR_RETURN(owns[i].contender, own->ContenderOf(scenarios_[i]));
      if (redis == nullptr || !RedisCan(scenarios_[i])) continue;
      ASSIGN_OR_RETURN(others[i].contender, redis->ContenderOf(scenarios_[i]));
    }
    for (int repetition = -1; repetition < options_.repeat; ++repetition) {
      RETURN_IF_ERROR(Measure(repetition, &socket));
      for (size_t i = 0; i < scenarios_.size(); ++i) {
        RETURN_IF_ERROR(Measure(repetition, &owns[i]));
        RETURN_IF_ERROR(Measure(repetition, &others[i]));
      }
    }
    std::vector<RowResult> results;
    for (size_t i = 0; i < scenarios_.size(); ++i) {
      results.push_back(ResultOf(scenarios_[i], owns[i], others[i], socket));
    }
    return results;
  }

 private:
  struct Entry {
    Contender contender;  // without clients: there is none
    std::vector<RunResult> runs;
  };

  static bool RedisCan(const RowScenario& scenario) {
    return scenario.direction != Direction::kPushPull;
  }

  // Repetition -1 warms up.
  absl::Status Measure(int repetition, Entry* entry) const {
    if (entry->contender.clients.empty()) return absl::OkStatus();
    if (repetition < 0) {
      return RunOnce(entry->contender, {0, options_.timing.warm_up_seconds}).status();
    }
    ASSIGN_OR_RETURN(entry->runs.emplace_back(), RunOnce(entry->contender, options_.timing));
    return absl::OkStatus();
  }

  static RowResult ResultOf(const RowScenario& scenario, const Entry& own, const Entry& other,
                            const Entry& socket) {
    RowResult result;
    result.scenario = scenario;
    result.rates = RatesOf(own.runs, scenario.direction != Direction::kPush);
    if (!other.runs.empty()) {
      result.redis = RatesOf(other.runs, /*knows_cpu=*/false);
      result.of_redis = RatiosOf(own.runs, other.runs);
    }
    std::vector<double> rates;
    for (const RunResult& run : socket.runs) rates.push_back(run.PushedBytes() / 1e9);
    result.raw_socket = SpreadOf(rates);
    return result;
  }

  const RowBenchOptions& options_;
  const std::vector<RowScenario> scenarios_;
};

class RowBench {
 public:
  explicit RowBench(const RowBenchOptions& options) : options_(options) {}

  RowResults Run() {
    results_.dim = options_.dim;
    const bool redis = options_.redis && RedisIsInstalled();
    if (!redis) LogInfo("rows are measured without Redis: there is no redis-server");
    for (const int64_t dim : BenchDims(options_.dim)) {
      const absl::Status status = MeasureDim(dim, redis);
      if (!status.ok()) LogError("rows of dim ", dim, ": ", status.message());
      results_.status.Update(status);
    }
    return std::move(results_);
  }

 private:
  bool Wants(absl::string_view name) const { return IsSelected(name, options_.scenarios); }

  absl::Status MeasureDim(int64_t dim, bool with_redis) {
    std::vector<RowScenario> scenarios;
    for (const RowScenario& scenario : RowScenarios(options_.dim)) {
      if (scenario.dim == dim && Wants(scenario.name)) scenarios.push_back(scenario);
    }
    const bool alone = dim == options_.dim && (Wants(kRowsWire) || Wants(kRowsIdle) ||
                                               Wants(kRowsSnapshot) || Wants(kRowsExpiry));
    if (scenarios.empty() && !alone) return absl::OkStatus();
    LogInfo("rows of dim ", dim);
    RowClusterOptions options;
    options.dim = dim;
    // Each field has as many.
    options.rows = options_.rows / kBatchFields * kBatchFields;
    options.io_threads = options_.io_threads;
    options.model_dir = JoinPath(options_.directory, absl::StrCat("rows-", getpid()));
    ASSIGN_OR_RETURN(const std::unique_ptr<RowCluster> own, RowCluster::Start(options));
    if (!scenarios.empty()) RETURN_IF_ERROR(Compare(options, scenarios, with_redis, own.get()));
    return alone ? MeasureAlone(options, own.get()) : absl::OkStatus();
  }

  absl::Status Compare(RowClusterOptions options, std::vector<RowScenario> scenarios,
                       bool with_redis, RowCluster* own) {
    options.system = RowSystem::kRedis;
    std::unique_ptr<RowCluster> redis;
    if (with_redis) {
      ASSIGN_OR_RETURN(redis, RowCluster::Start(options));
    }
    ASSIGN_OR_RETURN(std::vector<RowResult> results,
                     RowComparison(options_, std::move(scenarios)).Run(own, redis.get()));
    for (RowResult& result : results) results_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  absl::Status MeasureAlone(const RowClusterOptions& options, RowCluster* cluster) {
    if (Wants(kRowsWire)) RETURN_IF_ERROR(MeasureBytes(cluster));
    if (Wants(kRowsIdle)) {
      const double began = MonotonicSeconds(), used = cluster->server()->CpuSeconds();
      absl::SleepFor(absl::Seconds(options_.idle_seconds));
      results_.idle = (cluster->server()->CpuSeconds() - used) / (MonotonicSeconds() - began);
    }
    if (Wants(kRowsExpiry)) {
      ASSIGN_OR_RETURN(results_.expiry, MeasureRowExpiry(options_, options, cluster));
    }
    if (!Wants(kRowsSnapshot)) return absl::OkStatus();
    RETURN_IF_ERROR(CreateDirectories(options.model_dir));
    const auto snapshot = MeasureRowSnapshots(options_, options, cluster);
    rmdir(options.model_dir.c_str());
    RETURN_IF_ERROR(snapshot.status());
    results_.snapshot = *snapshot;
    return absl::OkStatus();
  }

  absl::Status MeasureBytes(RowCluster* cluster) {
    for (const Wire wire : {Wire::kFloat32, Wire::kBfloat16}) {
      ASSIGN_OR_RETURN(
          const nlohmann::json answer,
          cluster->worker()->Call({{"do", "wire"}, {"format", Name(wire)}}, absl::Minutes(1)));
      results_.bytes.push_back({Name(wire),
                                {answer.at("push").get<double>(), answer.at("pull").get<double>(),
                                 answer.at("absent").get<double>()}});
    }
    return absl::OkStatus();
  }

  const RowBenchOptions& options_;
  RowResults results_;
};

}  // namespace

RowResults MeasureRows(const RowBenchOptions& options) { return RowBench(options).Run(); }

}  // namespace keelson::bench
