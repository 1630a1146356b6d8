// A run's files in memory, written by hand in the forms that the chief and the evaluator write, and
// the API on them.
#ifndef KEELSON_DASHBOARD_DASHBOARD_TESTING_H_
#define KEELSON_DASHBOARD_DASHBOARD_TESTING_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file_system_testing.h"
#include "core/http/message.h"
#include "dashboard/api/api.h"
#include "dashboard/api/live_updates.h"
#include "dashboard/api/predictor.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run_set.h"
#include "gtest/gtest.h"

namespace keelson {

// Finds no items.
class PredictorOfNoItems : public Predictor {
 public:
  absl::StatusOr<NearestItems> Nearest(const v1::TrainConfig&, const RetrievalSpec&,
                                       const std::vector<bool>&, Batch, size_t) override {
    return absl::NotFoundError("there are no items");
  }
};

// A record of an event file with one scalar.
std::string ScalarRecord(const std::string& tag, int64_t step, double time, float value);

// A line of eval/metrics.jsonl.
std::string EvaluationLine(int64_t step, double time, double loss, double accuracy);

// status.json of a job that trains: 2 servers, 3 workers, an evaluator, and step 1200 of 2000;
// written at 1.7e9, where ManualClock begins.
Json TrainingStatus();

// train_config.textproto of a model with two inputs and two classes, "no" and "yes".
std::string TinyConfigText();
// Of a binary model of ids: "user", of 9, whose embedding is frozen, and "seen", a weighted bag
// of 8.
std::string IdConfigText();
// The model is binary and has columns: "age", a number, "tags", a list with "|" between its values,
// and "city", which is "Oslo", "Rome" or another; the label is "bought".
std::string ColumnsConfigText();
// The model has two towers of ids: "user" and "item", of which a user is not shown those that are
// "seen".
std::string TowersConfigText();

class RunFiles {
 public:
  RunFiles(MemoryFileSystem* files, std::string model_dir);

  const std::string& model_dir() const { return model_dir_; }
  std::string Path(const std::string& name) const;

  void Write(const std::string& name, const std::string& content) const;
  void Append(const std::string& name, const std::string& content) const;
  void Remove(const std::string& name) const;
  // With variables "scores/kernel", whose rows are [scale, 0] and [0, scale], "scores/bias", and a
  // slot of the optimizer.
  void CommitSnapshot(int64_t step, float scale, int64_t keep_max = 5) const;

 private:
  MemoryFileSystem* const files_;
  const std::string model_dir_;
};

// Requests of the API on the runs that a test sets up.
class DashboardApiTest : public testing::Test {
 protected:
  static constexpr char kToken[] = "0123456789abcdef";

  DashboardApiTest();

  // The files of the run "/jobs/mnist", the process's own job.
  RunFiles files() { return RunFiles(&memory_, "/jobs/mnist"); }

  // Set these before the first request.
  RunSet::Options run_options_;
  DashboardApi::Options api_options_;

  // Reads the files completely.
  void Poll();
  // `target` is as in a request line; a body has the content type of JSON.
  HttpResponse Ask(const std::string& method, const std::string& target,
                   const std::string& body = "", const std::string& authorization = "");
  // Expects 200 and JSON. `path` below /api/v1.
  Json Get(const std::string& path);
  // Expects this status and {"error": …}; returns the error.
  std::string Error(int status, const HttpResponse& response);
  // Valid after Poll.
  RunSet& runs() { return *runs_; }
  DashboardApi& api();
  LiveUpdates& updates();

  MemoryFileSystem memory_;
  ManualClock clock_;

 private:
  std::unique_ptr<RunSet> runs_;
  std::unique_ptr<LiveUpdates> updates_;
  std::unique_ptr<DashboardApi> api_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_DASHBOARD_TESTING_H_
