// data_bench: how fast the lines of text files become batches, beside memchr over the same bytes,
// on one core; docs/performance.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "bench/data/measurement.h"
#include "bench/data/sample_lines.h"
#include "bench/one_table.h"
#include "bench/table.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/criteo_format.h"
#include "core/data/csv_format.h"
#include "core/data/libsvm_format.h"
#include "keelson/v1/train_config.pb.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

constexpr double kLibsvmGoal = 0.3, kCriteoGoal = 0.4, kTsvGoal = 0.4;

struct Options {
  std::string libsvm;
  std::string criteo;
  int64_t megabytes = 64;
  int64_t batch = 1024;
  bool quick = false;
  OneTableOptions print = {.repeat = 9};
};

// A weighted bag of any ids.
std::unique_ptr<const RecordFormat> Libsvm() {
  return *NewLibsvmFormat({}, {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}});
}

// All columns.
std::unique_ptr<const RecordFormat> Criteo() {
  RecordSchema schema = {
      {{"numbers", Shape({kCriteoNumbers})}, {"missing", Shape({kCriteoNumbers})}}, {{"label", 2}}};
  for (int64_t k = 1; k <= kCriteoIds; ++k) {
    schema.features.push_back({absl::StrCat("c", k), {}, FeatureKind::kId});
  }
  return *NewCriteoFormat({}, schema);
}

// The same of the same lines by their columns' names: numbers, indicators and ids.
std::unique_ptr<const RecordFormat> CriteoAsTsv() {
  const std::unique_ptr<const RecordFormat> criteo = Criteo();
  v1::DataConfig data;
  data.mutable_csv()->set_separator("tab");
  data.mutable_csv()->add_header("label");
  v1::DataConfig::FeatureColumns* const numbers = data.add_features();
  v1::DataConfig::FeatureColumns* const missing = data.add_features();
  numbers->set_name("numbers");
  missing->set_name("missing");
  for (int64_t k = 1; k <= kCriteoNumbers; ++k) {
    const std::string column = absl::StrCat("n", k);
    data.mutable_csv()->add_header(column);
    v1::DataConfig::ColumnValues* const number = numbers->add_columns();
    number->set_column(column);
    number->mutable_number()->set_log(true);
    number->mutable_number()->set_min(0);
    v1::DataConfig::ColumnValues* const indicator = missing->add_columns();
    indicator->set_column(column);
    indicator->mutable_missing();
  }
  for (int64_t k = 1; k <= kCriteoIds; ++k) data.mutable_csv()->add_header(absl::StrCat("c", k));
  return *NewCsvFormat(data, criteo->schema(), /*path=*/"", FileSystem::Real());
}

// Files of this program's own, which are removed with it.
class SampleFiles {
 public:
  ~SampleFiles() {
    for (const std::string& path : paths_) RemoveFile(path).IgnoreError();
  }

  absl::StatusOr<std::string> Write(const std::string& content) {
    const std::string path = NewPath();
    RETURN_IF_ERROR(WriteFileAtomically(path, content));
    return path;
  }
  std::string NewPath() {
    return paths_.emplace_back(absl::StrCat("/tmp/keelson_data_bench_", absl::Hex(RandomId())));
  }

 private:
  std::vector<std::string> paths_;
};

absl::StatusOr<std::vector<LineFile>> FilesOf(const Options& options, SampleFiles* files) {
  const auto bytes = static_cast<size_t>(options.quick ? 4 : options.megabytes) << 20;
  std::vector<LineFile> subjects;
  if (!options.libsvm.empty()) {
    subjects.push_back({"libsvm", options.libsvm, Libsvm, kLibsvmGoal, files->NewPath()});
  }
  if (!options.criteo.empty()) {
    subjects.push_back({"Criteo", options.criteo, Criteo, kCriteoGoal, files->NewPath()});
    subjects.push_back({"Criteo as TSV", options.criteo, CriteoAsTsv, kTsvGoal, files->NewPath()});
  }
  if (!subjects.empty()) return subjects;
  ASSIGN_OR_RETURN(const std::string a9a, files->Write(LinesLikeA9a(bytes)));
  ASSIGN_OR_RETURN(const std::string rcv1, files->Write(LinesLikeRcv1(bytes)));
  ASSIGN_OR_RETURN(const std::string criteo, files->Write(LinesLikeCriteo(bytes)));
  return std::vector<LineFile>{{"libsvm like a9a", a9a, Libsvm, kLibsvmGoal, files->NewPath()},
                               {"libsvm like rcv1", rcv1, Libsvm, kLibsvmGoal, files->NewPath()},
                               {"Criteo", criteo, Criteo, kCriteoGoal, files->NewPath()},
                               {"Criteo as TSV", criteo, CriteoAsTsv, kTsvGoal, files->NewPath()}};
}

bool Met(const MeasuredLines& measured) { return measured.gigabytes.median >= measured.goal; }

std::string Text(const Spread& spread) {
  return absl::StrFormat("%.2f (%.2f-%.2f)", spread.median, spread.min, spread.max);
}

Table ToTable(const std::vector<MeasuredLines>& all) {
  Table table;
  table.title = "Lines on one core: median (least-most)";
  table.columns = {"lines", "operation", "GB/s", "million records/s", "goal"};
  for (const MeasuredLines& measured : all) {
    const std::string goal = measured.goal == 0 ? "-"
                                                : absl::StrFormat("%.2g GB/s %s", measured.goal,
                                                                  Met(measured) ? "met" : "missed");
    table.rows.push_back({measured.subject, measured.operation, Text(measured.gigabytes),
                          Text(measured.records), goal});
  }
  return table;
}

nlohmann::json ToJson(const Options& options, const std::vector<MeasuredLines>& all) {
  nlohmann::json rows = nlohmann::json::array();
  for (const MeasuredLines& measured : all) {
    rows.push_back({{"lines", measured.subject},
                    {"operation", measured.operation},
                    {"gigabytes_per_core_second", SpreadAsJson(measured.gigabytes)},
                    {"million_records_per_core_second", SpreadAsJson(measured.records)},
                    {"goal", measured.goal},
                    {"met", Met(measured)}});
  }
  return {{"batch", options.batch}, {"repeat", options.print.repeat}, {"measured", rows}};
}

absl::Status Run(const Options& options) {
  SampleFiles files;
  ASSIGN_OR_RETURN(const std::vector<LineFile> subjects, FilesOf(options, &files));
  std::vector<MeasuredLines> all;
  for (const LineFile& subject : subjects) {
    ASSIGN_OR_RETURN(std::vector<MeasuredLines> found,
                     Measure(subject, options.batch, options.quick ? 3 : options.print.repeat));
    for (MeasuredLines& measured : found) all.push_back(std::move(measured));
  }
  Print(options.print, ToTable(all), ToJson(options, all));
  const auto missed = std::count_if(all.begin(), all.end(), [](const auto& m) { return !Met(m); });
  if (missed == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(missed, " goals are missed"));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how fast the lines of text files become batches, on one core.");
  app.add_option("--libsvm", options.libsvm, "A libsvm file (default: lines that are drawn)");
  app.add_option("--criteo", options.criteo, "A file of Criteo's click logs (likewise)");
  app.add_option("--megabytes", options.megabytes, "of each file that is drawn")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 14));
  app.add_option("--batch", options.batch, "records of a batch")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_flag("--quick", options.quick, "4 MB and three measurements");
  AddOneTableFlags(&app, &options.print);
  return RunProgram(&app, argc, argv, [&] { return Run(options); });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return keelson::bench::Main(argc, argv);
}
