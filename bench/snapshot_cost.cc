#include "bench/snapshot_cost.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/cluster.h"
#include "bench/meter.h"
#include "bench/run.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/client/services/grpc_parameter_control.h"

namespace keelson::bench {
namespace {

constexpr double kWarmUpSeconds = 0.5;
constexpr size_t kPlainPieceBytes = 1 << 20;
// Above that with which the server was initialized.
constexpr uint64_t kTerm = 1'000'000;

struct Written {
  int snapshots = 0;
  int64_t bytes = 0;  // of the newest
  double seconds = 0;
  int64_t longest_cut_microseconds = 0;
  absl::Status status;

  double GigabytesPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) * snapshots / seconds / 1e9 : 0;
  }
};

// Writes one snapshot after the other, from Start to Finish, on a thread of its own.
class SnapshotLoop {
 public:
  SnapshotLoop(ParameterControl* server, std::string path)
      : server_(server), path_(std::move(path)), thread_([this] { Run(); }) {}
  ~SnapshotLoop() {
    if (thread_.joinable()) Finish();
  }

  // The last one is written to its end.
  Written Finish() {
    stop_ = true;
    thread_.join();
    return written_;
  }

 private:
  void Run() {
    while (!stop_ && written_.status.ok()) written_.status = WriteOne();
  }

  absl::Status WriteOne() {
    v1::WriteSnapshotRequest request;
    request.mutable_header()->set_chief_term(kTerm);
    request.set_num_data_shards(1);
    v1::WriteSnapshotResponse response;
    const double start = MonotonicSeconds();
    RETURN_IF_ERROR(server_->WriteSnapshot(request, &response));
    written_.seconds += MonotonicSeconds() - start;
    written_.bytes = response.bytes_written();
    written_.longest_cut_microseconds =
        std::max(written_.longest_cut_microseconds, response.cut_microseconds());
    ++written_.snapshots;
    return RemoveFile(path_);
  }

  ParameterControl* const server_;
  const std::string path_;
  std::atomic<bool> stop_{false};
  Written written_;  // the thread's, until it has ended
  std::thread thread_;
};

Scenario StepsOf(const std::string& model, Handler handler) {
  for (const Scenario& scenario : Select(FullScenarios(), absl::StrCat("model-", model))) {
    if (scenario.workload != Workload::kSteps) continue;
    Scenario steps = scenario;
    steps.handler = handler;
    return steps;
  }
  return Scenario();
}

// GB/s of a durable file of that size.
absl::StatusOr<double> PlainWrite(const std::string& path, int64_t bytes) {
  const std::string piece(kPlainPieceBytes, 'x');
  const double start = MonotonicSeconds();
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                   FileSystem::Real()->OpenForAppend(path, /*truncate=*/true));
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(piece.size())) {
    RETURN_IF_ERROR(file->Append(piece));
  }
  RETURN_IF_ERROR(file->Close());
  const double seconds = MonotonicSeconds() - start;
  RETURN_IF_ERROR(RemoveFile(path));
  return static_cast<double>(bytes) / seconds / 1e9;
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
        path_(
            PendingPath(JoinPath(options.directory, "model.ckpt-0.data-00000-of-00001"), kTerm, 0)),
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
    SnapshotLoop loop(server_.get(), path_);
    const absl::StatusOr<RunResult> during = RunOnce(contender_, Timing());
    const Written written = loop.Finish();
    RETURN_IF_ERROR(during.status());
    RETURN_IF_ERROR(written.status);
    before_.push_back(before.Calls());
    during_.push_back(during->Calls());
    ratio_.push_back(during->Calls() / before.Calls());
    write_.push_back(written.GigabytesPerSecond());
    cost_.bytes = written.bytes;
    cost_.snapshots += written.snapshots;
    cost_.longest_cut_microseconds =
        std::max(cost_.longest_cut_microseconds, written.longest_cut_microseconds);
    ASSIGN_OR_RETURN(plain_.emplace_back(), PlainWrite(path_, written.bytes));
    return absl::OkStatus();
  }

  const SnapshotOptions& options_;
  const ComparisonOptions comparison_;
  const Scenario scenario_;
  const std::string path_;
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
