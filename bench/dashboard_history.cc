#include "bench/dashboard_history.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/summary/event_writer.h"

namespace keelson::bench {
namespace {

using Json = nlohmann::json;
using Scalars = std::vector<std::pair<std::string, double>>;

constexpr absl::Duration kTaskInterval = absl::Seconds(30);
constexpr int64_t kKeptSnapshots = 5;
constexpr int64_t kKeptReports = 20;
constexpr int kClasses = 10;
constexpr int kPixels = 28 * 28;
constexpr int kWrongExamples = 24;
constexpr int64_t kInputs = kPixels;
constexpr int64_t kHidden = 256;
constexpr char kConfig[] = R"(model {
  name: "mlp"
  input_shape: 28 input_shape: 28 input_shape: 1
  layers { flatten {} }
  layers { dense { units: 256 } }
  layers { relu {} }
  layers { dense { units: 10 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
)";

class HistoryWriter {
 public:
  HistoryWriter(const DashboardHistory& history, std::string model_dir, absl::Time now)
      : history_(history),
        model_dir_(std::move(model_dir)),
        now_(now),
        begin_(now - absl::Hours(history.hours)) {}

  absl::Status WriteAll() {
    RETURN_IF_ERROR(CreateDirectories(JoinPath(model_dir_, "eval/reports")));
    RETURN_IF_ERROR(WriteTraining());
    RETURN_IF_ERROR(WriteTasks());
    RETURN_IF_ERROR(WriteEvaluations());
    RETURN_IF_ERROR(WriteSnapshots());
    RETURN_IF_ERROR(Write("train_config.textproto", kConfig));
    RETURN_IF_ERROR(Write("placement.json", Placement().dump()));
    return Write("status.json", Status().dump());
  }

 private:
  absl::Status Write(const std::string& name, const std::string& content) {
    return WriteFileAtomically(JoinPath(model_dir_, name), content);
  }
  double Seconds(absl::Time time) const { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }
  double Noise() { return noise_(random_); }
  int64_t StepOfEvaluation(int64_t i) const {
    return (i + 1) * history_.points / history_.evaluations;
  }

  absl::Status WriteTraining() {
    ManualClock clock(begin_);
    ASSIGN_OR_RETURN(const std::unique_ptr<EventWriter> events,
                     EventWriter::Create(model_dir_, &clock));
    const absl::Duration interval = (now_ - begin_) / static_cast<double>(history_.points);
    for (int64_t step = 1; step <= history_.points; ++step) {
      const double loss = 2.3 / std::sqrt(static_cast<double>(step)) + 0.05 * std::abs(Noise());
      const Scalars scalars = {
          {"loss", loss}, {"learning_rate", 0.05}, {"global_step/sec", 11.6 + Noise()}};
      RETURN_IF_ERROR(events->AddScalars(step, scalars));
      clock.Advance(interval);
    }
    return events->Flush();
  }

  absl::Status WriteTasks() {
    ManualClock clock(begin_);
    ASSIGN_OR_RETURN(const std::unique_ptr<EventWriter> events,
                     EventWriter::Create(JoinPath(model_dir_, "tasks"), &clock));
    const auto intervals = static_cast<int64_t>((now_ - begin_) / kTaskInterval);
    for (int64_t i = 1; i <= intervals; ++i) {
      clock.Advance(kTaskInterval);
      Scalars scalars;
      for (int worker = 0; worker < history_.workers; ++worker) AddWorker(worker, &scalars);
      for (int server = 0; server < history_.servers; ++server) AddServer(server, &scalars);
      RETURN_IF_ERROR(events->AddScalars(i * history_.points / intervals, scalars));
    }
    return events->Flush();
  }

  void AddWorker(int index, Scalars* scalars) {
    for (const char* const name :
         {"steps_per_second", "examples_per_second", "staleness", "pushed_bytes_per_second",
          "pulled_bytes_per_second", "input_seconds", "pull_seconds", "compute_seconds",
          "push_seconds"}) {
      scalars->emplace_back(absl::StrCat("worker-", index, "/", name), 10 + Noise());
    }
  }

  void AddServer(int index, Scalars* scalars) {
    for (const char* const name : {"pushed_bytes_per_second", "pulled_bytes_per_second"}) {
      scalars->emplace_back(absl::StrCat("ps-", index, "/", name), 1e7 + 1e6 * Noise());
    }
  }

  absl::Status WriteEvaluations() {
    std::string lines;
    for (int64_t i = 0; i < history_.evaluations; ++i) {
      const int64_t step = StepOfEvaluation(i);
      const double part = static_cast<double>(i + 1) / static_cast<double>(history_.evaluations);
      const absl::Time time = begin_ + part * (now_ - begin_);
      const Json line = {{"step", step},
                         {"wall_time", Seconds(time)},
                         {"loss", 0.1 + 0.01 * Noise()},
                         {"accuracy", 0.9 + 0.001 * Noise()},
                         {"precision", 0.9 + 0.001 * Noise()},
                         {"recall", 0.9 + 0.001 * Noise()},
                         {"top_5_accuracy", 0.99},
                         {"examples", 10000},
                         {"seconds", 0.4}};
      absl::StrAppend(&lines, line.dump(), "\n");
      if (i + kKeptReports < history_.evaluations) continue;
      RETURN_IF_ERROR(Write(absl::StrCat("eval/reports/", step, ".json"), Report(step, time)));
    }
    return Write("eval/metrics.jsonl", lines);
  }

  std::string Report(int64_t step, absl::Time time) {
    Json report = {{"step", step},      {"time", Seconds(time)}, {"kind", "classification"},
                   {"examples", 10000}, {"accuracy", 0.9},       {"calibration_error", 0.01}};
    for (int i = 0; i < kClasses; ++i) {
      report["classes"].push_back(absl::StrCat(i));
      report["confusion"].push_back(std::vector<int>(kClasses, 7));
      report["per_class"].push_back(
          {{"precision", 0.9}, {"recall", 0.9}, {"f1", 0.9}, {"support", 1000}});
      report["calibration"].push_back({{"from", 0.1 * i},
                                       {"to", 0.1 * (i + 1)},
                                       {"count", 1000},
                                       {"confidence", 0.1 * i},
                                       {"accuracy", 0.1 * i}});
    }
    for (int i = 0; i < kWrongExamples; ++i) {
      std::vector<int> pixels(kPixels);
      for (int& pixel : pixels) pixel = static_cast<int>(random_() % 256);
      report["wrong"].push_back({{"record", i},
                                 {"label", 3},
                                 {"predicted", 5},
                                 {"confidence", 0.99},
                                 {"label_probability", 0.001},
                                 {"input", {{"shape", {28, 28, 1}}, {"values", pixels}}}});
    }
    return report.dump();
  }

  absl::Status WriteSnapshots() {
    CheckpointDirectory directory(FileSystem::Real(), model_dir_, Clock::Real());
    RetentionPolicy retention;
    retention.keep_max = kKeptSnapshots;
    for (int64_t i = history_.evaluations - kKeptSnapshots; i < history_.evaluations; ++i) {
      const int64_t step = StepOfEvaluation(i);
      RETURN_IF_ERROR(WriteBundle(directory.SnapshotPrefix(step)));
      RETURN_IF_ERROR(directory.Commit(step, retention));
    }
    return absl::OkStatus();
  }

  absl::Status WriteBundle(const std::string& prefix) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<BundleDataWriter> writer,
        BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, 0, 1), /*data_shard=*/0));
    const std::pair<const char*, Shape> variables[] = {
        {"dense_1/kernel", Shape({kInputs, kHidden})},
        {"dense_1/bias", Shape({kHidden})},
        {"dense_2/kernel", Shape({kHidden, kClasses})},
        {"dense_2/bias", Shape({kClasses})}};
    for (const auto& [name, shape] : variables) {
      std::vector<float> values(shape.num_elements());
      for (float& value : values) value = static_cast<float>(Noise());
      RETURN_IF_ERROR(writer->AddTensor(name, shape, values));
    }
    ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> entries, writer->Finish());
    return WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries));
  }

  Json Placement() const {
    Json json = {{"balance", 1.0}};
    for (int i = 0; i < history_.servers; ++i) {
      json["shards"].push_back({{"task", absl::StrCat("ps-", i)}, {"bytes", 250000}});
    }
    for (int i = 0; i < 100; ++i) {
      Json partitions = Json::array();
      for (int shard = 0; shard < history_.servers; ++shard) {
        partitions.push_back({{"shard", shard},
                              {"row_begin", 64 * shard},
                              {"row_end", 64 * (shard + 1)},
                              {"bytes", 2500}});
      }
      json["variables"].push_back({{"name", absl::StrCat("dense_", i, "/kernel")},
                                   {"shape", {64 * history_.servers, 10}},
                                   {"bytes", 2500 * history_.servers},
                                   {"partitions", partitions}});
    }
    return json;
  }

  Json Member(const char* role, int index) const {
    return {{"task", absl::StrCat(role, "-", index)},
            {"role", role},
            {"index", index},
            {"peer", "host:17"},
            {"state", "alive"},
            {"since", Seconds(begin_)},
            {"restarts", 0},
            {"device", "cpu, 2 threads"}};
  }

  Json Worker(int index) const {
    Json json = Member("worker", index);
    json["steps"] = history_.points / history_.workers;
    json["examples"] = 64 * history_.points / history_.workers;
    json["push_retries"] = 0;
    json["steps_per_second"] = 0.8;
    json["examples_per_second"] = 51.2;
    json["pushed_bytes_per_second"] = 1e7;
    json["pulled_bytes_per_second"] = 1e7;
    json["credit_wait_seconds"] = 0.0001;
    json["step_seconds"] = {{"input", 0.1}, {"pull", 0.1}, {"compute", 0.8}, {"push", 0.1}};
    json["staleness"] = {{"mean", 2.0},
                         {"max", 20},
                         {"bounds", {0, 1, 2, 4, 8, 16, 32, 64}},
                         {"counts", {100, 500, 30, 10, 0, 0, 0, 0, 0}}};
    return json;
  }

  Json Status() const {
    Json json = {{"time", Seconds(now_)},    {"started", Seconds(begin_)},
                 {"phase", "TRAINING"},      {"error", ""},
                 {"mode", "async"},          {"end_reason", ""},
                 {"step", history_.points},  {"max_steps", 2 * history_.points},
                 {"epoch", 1000.0},          {"loss", 0.05},
                 {"steps_per_second", 11.6}, {"examples_per_second", 742.4},
                 {"eta_seconds", 86400},     {"chief", Member("chief", 0)}};
    for (int i = 0; i < history_.workers; ++i) json["members"].push_back(Worker(i));
    json["members"].push_back(Member("evaluator", 0));
    for (int i = 0; i < history_.servers; ++i) {
      Json server = Member("ps", i);
      server["value_bytes"] = 250000;
      server["slot_bytes"] = 500000;
      server["pushed_bytes_per_second"] = 3e7;
      server["pulled_bytes_per_second"] = 3e7;
      json["servers"].push_back(server);
    }
    return json;
  }

  const DashboardHistory history_;
  const std::string model_dir_;
  const absl::Time now_;
  const absl::Time begin_;
  std::mt19937 random_{1};
  std::normal_distribution<double> noise_{0, 1};
};

}  // namespace

absl::Status WriteDashboardHistory(const DashboardHistory& history, const std::string& model_dir,
                                   absl::Time now) {
  return HistoryWriter(history, model_dir, now).WriteAll();
}

}  // namespace keelson::bench
