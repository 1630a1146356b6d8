// dashboard_bench: how fast the dashboard answers about a long job; docs/performance.md.

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/dashboard_history.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/http/http_testing.h"
#include "dashboard/api/model_predictor.h"
#include "dashboard/dashboard.h"

namespace keelson::bench {
namespace {

constexpr double kGoalMilliseconds = 100;
// The dashboard serves 50 requests of a client in a second, and is to be measured, not refused.
constexpr absl::Duration kPause = absl::Milliseconds(25);
constexpr char kAcceptGzip[] = "Accept-Encoding: gzip\r\n";

struct Options {
  DashboardHistory history;
  std::string directory;  // empty: a temporary one
  int repeat = 20;
  int evaluations = 10;
  bool markdown = false;
};

struct Endpoint {
  std::string name;
  std::string method;
  std::string target;
  std::string body;
};

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

// The resident memory of this process.
double ResidentMegabytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

std::vector<Endpoint> Endpoints(const DashboardHistory& history) {
  const std::string run = "/api/v1/runs/run";
  const std::string data = absl::StrCat(run, "/series/data?");
  const int64_t middle = history.points / 2;
  std::string all_workers;
  for (int i = 0; i < history.workers; ++i) {
    absl::StrAppend(&all_workers, "name=task/worker-", i, "/steps_per_second&");
  }
  const int64_t last = history.points;
  const int64_t before = (history.evaluations - 1) * history.points / history.evaluations;
  std::string image = "{\"features\": [0";
  for (int i = 1; i < 28 * 28; ++i) absl::StrAppend(&image, ",0.5");
  image.append("]}");
  return {
      {"runs", "GET", "/api/v1/runs", ""},
      {"run", "GET", run, ""},
      {"series", "GET", absl::StrCat(run, "/series"), ""},
      {"data: 1 curve", "GET", absl::StrCat(data, "name=train/loss"), ""},
      {"data: 1 curve by time", "GET", absl::StrCat(data, "name=train/loss&x=time"), ""},
      {"data: 3 curves", "GET",
       absl::StrCat(data, "name=train/loss&name=train/learning_rate&name=train/global_step%2Fsec"),
       ""},
      {"data: 1 curve, zoomed", "GET",
       absl::StrCat(data, "name=train/loss&from=", middle, "&to=", middle + history.points / 100),
       ""},
      {"data: 1 curve, 20000 points", "GET", absl::StrCat(data, "name=train/loss&points=20000"),
       ""},
      {"data: a curve of each worker", "GET", absl::StrCat(data, all_workers, "x=time"), ""},
      {"snapshots", "GET", absl::StrCat(run, "/snapshots"), ""},
      {"snapshots/compare", "GET", absl::StrCat(run, "/snapshots/compare?a=", before, "&b=", last),
       ""},
      {"cluster", "GET", absl::StrCat(run, "/cluster"), ""},
      {"placement", "GET", absl::StrCat(run, "/placement"), ""},
      {"report", "GET", absl::StrCat(run, "/report"), ""},
      {"model", "GET", absl::StrCat(run, "/model"), ""},
      {"predict", "POST", absl::StrCat(run, "/predict"), image},
  };
}

struct Measured {
  Endpoint endpoint;
  double first = 0;  // ms
  std::vector<double> later;
  size_t bytes = 0;  // of the body, as sent
};

// A whole request over HTTP: connection, answer, packing.
absl::StatusOr<double> Ask(int port, const Endpoint& endpoint, size_t* bytes) {
  const std::string headers = endpoint.body.empty()
                                  ? kAcceptGzip
                                  : absl::StrCat(kAcceptGzip, "Content-Type: application/json\r\n");
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const HttpAnswer answer,
                   AskHttp(port, endpoint.method, endpoint.target, headers, endpoint.body));
  const double milliseconds = Milliseconds(absl::Now() - begin);
  if (answer.status != 200) {
    return absl::InternalError(absl::StrCat(endpoint.target, ": status ", answer.status));
  }
  *bytes = answer.body.size();
  absl::SleepFor(kPause);
  return milliseconds;
}

absl::StatusOr<Measured> Measure(int port, const Endpoint& endpoint, int repeat) {
  Measured measured;
  measured.endpoint = endpoint;
  ASSIGN_OR_RETURN(measured.first, Ask(port, endpoint, &measured.bytes));
  for (int i = 0; i < repeat; ++i) {
    ASSIGN_OR_RETURN(const double milliseconds, Ask(port, endpoint, &measured.bytes));
    measured.later.push_back(milliseconds);
  }
  return measured;
}

// From the end of writing an evaluation to its event in the stream of a browser.
absl::StatusOr<std::vector<double>> MeasureEvaluations(int port, const std::string& model_dir,
                                                       int64_t first_step, int evaluations) {
  ASSIGN_OR_RETURN(const HttpConnection stream, HttpConnection::To(port));
  stream.Send("GET /api/v1/events?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n");
  stream.ReceiveUntil("event: hello\n");
  std::vector<double> delays;
  for (int i = 0; i < evaluations; ++i) {
    // The moments at which they are written are none of the polls'.
    absl::SleepFor(absl::Milliseconds(1100 + 130 * i));
    const std::string line = absl::StrCat(
        "{\"step\":", first_step + i, ",\"wall_time\":", absl::ToUnixSeconds(absl::Now()),
        ",\"loss\":0.1,\"accuracy\":0.9,\"examples\":1,\"seconds\":0.1}\n");
    ASSIGN_OR_RETURN(const auto file,
                     FileSystem::Real()->OpenForAppend(JoinPath(model_dir, "eval/metrics.jsonl"),
                                                       /*truncate=*/false));
    RETURN_IF_ERROR(file->Append(line));
    const absl::Time begin = absl::Now();
    const std::string mark =
        absl::StrCat("{\"name\":\"eval/accuracy\",\"step\":[", first_step + i, "]");
    if (!absl::EndsWith(stream.ReceiveUntil(mark), mark)) {
      return absl::InternalError(
          absl::StrCat("the evaluation of step ", first_step + i, " was not told in the stream"));
    }
    delays.push_back(Milliseconds(absl::Now() - begin));
  }
  return delays;
}

std::string Number(double value) { return absl::StrFormat("%.1f", value); }

Table ToTable(const std::vector<Measured>& all) {
  Table table;
  table.title = "Milliseconds of a request";
  table.columns = {"endpoint", "first", "median", "worst", "KB sent"};
  for (const Measured& measured : all) {
    const Spread spread = SpreadOf(measured.later);
    table.rows.push_back({measured.endpoint.name, Number(measured.first), Number(spread.median),
                          Number(spread.max), Number(static_cast<double>(measured.bytes) / 1000)});
  }
  return table;
}

// Those that took longer than they may.
int CountSlow(const std::vector<Measured>& all) {
  int slow = 0;
  for (const Measured& measured : all) {
    const double worst = std::max(measured.first, SpreadOf(measured.later).max);
    if (worst < kGoalMilliseconds) continue;
    ++slow;
    std::cout << "slower than " << kGoalMilliseconds << " ms: " << measured.endpoint.name << "\n";
  }
  return slow;
}

absl::StatusOr<std::unique_ptr<Dashboard>> StartDashboard(const std::string& model_dir) {
  Dashboard::Options options;
  options.runs.model_dir = model_dir;
  options.runs.live = true;
  options.new_predictor = [](const std::string& directory) {
    return std::make_unique<ModelPredictor>(directory, /*threads=*/1, Clock::Real());
  };
  return Dashboard::Start(std::move(options));
}

absl::Status Run(const Options& options, const std::string& directory) {
  const std::string model_dir = JoinPath(directory, "run");
  RETURN_IF_ERROR(WriteDashboardHistory(options.history, model_dir, absl::Now()));
  const double before = ResidentMegabytes();
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<Dashboard> dashboard, StartDashboard(model_dir));
  while (!dashboard->loaded()) absl::SleepFor(absl::Milliseconds(1));
  std::cout << "history: " << options.history.hours << " h, " << options.history.tasks()
            << " tasks, " << options.history.points << " points in each of 3 curves\n"
            << "read in " << Number(Milliseconds(absl::Now() - begin) / 1000) << " s, "
            << Number(ResidentMegabytes() - before) << " MB\n\n";
  std::vector<Measured> all;
  for (const Endpoint& endpoint : Endpoints(options.history)) {
    ASSIGN_OR_RETURN(Measured measured, Measure(dashboard->port(), endpoint, options.repeat));
    all.push_back(std::move(measured));
  }
  std::cout << Render(ToTable(all), options.markdown ? TableStyle::kMarkdown : TableStyle::kText);
  ASSIGN_OR_RETURN(const std::vector<double> delays,
                   MeasureEvaluations(dashboard->port(), model_dir, options.history.points + 1,
                                      options.evaluations));
  const Spread spread = SpreadOf(delays);
  std::cout << "an evaluation is in the stream after " << Number(spread.median) << " ms ("
            << Number(spread.min) << "-" << Number(spread.max) << ")\n";
  const int slow = CountSlow(all);
  if (slow == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(slow, " of ", all.size(), " requests were slow"));
}

// Removes what it made.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_((std::filesystem::temp_directory_path() / "dashboard_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how fast the dashboard answers about a long job.");
  app.add_option("--directory", options.directory,
                 "empty folder for the job's files; default: a temporary one, removed at the end");
  app.add_option("--hours", options.history.hours)->check(CLI::Range(0.1, 1000.0));
  app.add_option("--servers", options.history.servers)->check(CLI::Range(1, 100));
  app.add_option("--workers", options.history.workers)->check(CLI::Range(1, 60));
  app.add_option("--points", options.history.points, "of each training curve")
      ->check(CLI::Range(1000, 2000000));
  app.add_option("--evaluations", options.history.evaluations)->check(CLI::Range(6, 1000));
  app.add_option("--repeat", options.repeat, "requests of each kind")->check(CLI::Range(1, 1000));
  app.add_flag("--markdown", options.markdown, "the table of docs/performance.md");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
  const TemporaryDirectory temporary;
  const std::string directory = options.directory.empty() ? temporary.path() : options.directory;
  if (directory.empty()) {
    LogError("no temporary directory can be made; --directory names one");
    return kExitPermanent;
  }
  const absl::Status status = Run(options, directory);
  if (status.ok()) return 0;
  LogError(status.message());
  return kExitPermanent;
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
