#include "bench/snapshot_cost.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/cluster.h"
#include "bench/run.h"
#include "bench/snapshot_loop.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_parameter_control.h"

namespace keelson::bench {
namespace {

constexpr double kWarmUpSeconds = 0.5;

Scenario StepsOf(const std::string& model, Handler handler) {
  for (const Scenario& scenario : Select(FullScenarios(), absl::StrCat("model-", model))) {
    if (scenario.workload != Workload::kSteps) continue;
    Scenario steps = scenario;
    steps.handler = handler;
    return steps;
  }
  return Scenario();
}

ComparisonOptions WithModelDir(const std::string& directory) {
  ComparisonOptions options;
  options.model_dir = directory;
  return options;
}

// The runs of one model.
class Measurement {
 public:
  Measurement(const SnapshotOptions& options, std::string model)
      : options_(options),
        comparison_(WithModelDir(options.directory)),
        scenario_(StepsOf(model, options.handler)),
        cluster_(comparison_) {
    cost_.model = std::move(model);
  }

  absl::StatusOr<SnapshotCost> Run() {
    ASSIGN_OR_RETURN(contender_, cluster_.Start(scenario_));
    const std::string address = contender_.servers[0]->ready().at("address").get<std::string>();
    server_ = ConnectParameterControl("ps-0", address, CredentialsAs("chief"));
    RETURN_IF_ERROR(RunOnce(contender_, Timing()).status());
    cost_.resident = contender_.servers[0]->PeakResidentBytes();
    for (int i = 0; i < options_.repeat; ++i) RETURN_IF_ERROR(Repeat());
    cost_.more_resident = contender_.servers[0]->PeakResidentBytes() - cost_.resident;
    cost_.steps_before = SpreadOf(before_);
    cost_.steps_during = SpreadOf(during_);
    cost_.ratio = SpreadOf(ratio_);
    cost_.write = SpreadOf(write_);
    cost_.plain_write = SpreadOf(plain_);
    return cost_;
  }

 private:
  RunTiming Timing() const { return {kWarmUpSeconds, options_.seconds}; }

  absl::Status Repeat() {
    ASSIGN_OR_RETURN(const RunResult before, RunOnce(contender_, Timing()));
    SnapshotLoop loop(server_.get(), options_.directory);
    const absl::StatusOr<RunResult> during = RunOnce(contender_, Timing());
    const WrittenSnapshots written = loop.Finish();
    RETURN_IF_ERROR(during.status());
    RETURN_IF_ERROR(written.status);
    RETURN_IF_ERROR(RemoveFile(written.newest.path));
    before_.push_back(before.Calls());
    during_.push_back(during->Calls());
    ratio_.push_back(during->Calls() / before.Calls());
    write_.push_back(written.GigabytesPerSecond());
    cost_.bytes = written.newest.bytes;
    cost_.snapshots += written.snapshots;
    cost_.longest_cut_microseconds =
        std::max(cost_.longest_cut_microseconds, written.longest_cut_microseconds);
    ASSIGN_OR_RETURN(plain_.emplace_back(), PlainWrite(written.newest.path, written.newest.bytes));
    return absl::OkStatus();
  }

  const SnapshotOptions& options_;
  const ComparisonOptions comparison_;
  const Scenario scenario_;
  Cluster cluster_;
  Contender contender_;
  std::unique_ptr<ParameterControl> server_;
  SnapshotCost cost_;
  std::vector<double> before_, during_, ratio_, write_, plain_;
};

std::string WithSpread(const Spread& spread, int digits) {
  return absl::StrFormat("%.*f (%.*f-%.*f)", digits, spread.median, digits, spread.min, digits,
                         spread.max);
}

}  // namespace

absl::StatusOr<std::vector<SnapshotCost>> MeasureSnapshots(const SnapshotOptions& options) {
  RETURN_IF_ERROR(CreateDirectories(options.directory));
  std::vector<SnapshotCost> costs;
  for (const std::string& model : options.models) {
    LogInfo("snapshots of a model of ", model);
    ASSIGN_OR_RETURN(costs.emplace_back(), Measurement(options, model).Run());
  }
  return costs;
}

nlohmann::json SnapshotJson(const std::vector<SnapshotCost>& costs) {
  nlohmann::json rows = nlohmann::json::array();
  for (const SnapshotCost& cost : costs) {
    rows.push_back({{"model", cost.model},
                    {"file_bytes", cost.bytes},
                    {"calls_per_s_before", cost.steps_before.median},
                    {"calls_per_s_during", cost.steps_during.median},
                    {"ratio", cost.ratio.median},
                    {"write_gbytes_per_s", cost.write.median},
                    {"plain_write_gbytes_per_s", cost.plain_write.median},
                    {"longest_cut_us", cost.longest_cut_microseconds},
                    {"snapshots", cost.snapshots},
                    {"server_bytes_before", cost.resident},
                    {"server_bytes_more", cost.more_resident}});
  }
  return rows;
}

Table SnapshotTable(const std::vector<SnapshotCost>& costs) {
  Table table;
  table.title = "Training while snapshots are written, one after the other";
  table.columns = {"model",     "file MB",          "calls/s before",  "calls/s during",
                   "ratio",     "write GB/s",       "plain file GB/s", "longest cut us",
                   "snapshots", "server MB before", "more MB during"};
  for (const SnapshotCost& cost : costs) {
    table.rows.push_back(
        {cost.model, absl::StrFormat("%.0f", static_cast<double>(cost.bytes) / 1e6),
         WithSpread(cost.steps_before, 0), WithSpread(cost.steps_during, 0),
         WithSpread(cost.ratio, 2), WithSpread(cost.write, 2), WithSpread(cost.plain_write, 2),
         absl::StrCat(cost.longest_cut_microseconds), absl::StrCat(cost.snapshots),
         absl::StrFormat("%.0f", static_cast<double>(cost.resident) / 1e6),
         absl::StrFormat("%.0f", static_cast<double>(cost.more_resident) / 1e6)});
  }
  return table;
}

}  // namespace keelson::bench
