// The API under requests that make no sense, on a run whose files are good and on one whose are
// not.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_fuzz_testing.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

constexpr int kRequests = 5'000;
constexpr char kSecret[] = "s3cret-of-the-host";

class NoActions : public JobActions {
 public:
  absl::Status EndTraining(absl::string_view) override { return Changed(); }
  absl::Status SetMode(absl::string_view) override { return Changed(); }

 private:
  static absl::Status Changed() {
    ADD_FAILURE() << "changed without the token";
    return absl::OkStatus();
  }
};

// Has no snapshot of any model.
class NoPredictor : public PredictorOfNoItems {
 public:
  absl::StatusOr<Prediction> Predict(const v1::TrainConfig&, Batch) override {
    return absl::NotFoundError("there is no snapshot yet that can be read");
  }
};

std::vector<HttpSample> Samples(const std::string& run) {
  const std::string base = absl::StrCat("/api/v1/runs/", run);
  return {
      {"GET", "/api/v1/runs", {}, ""},
      {"GET", base, {}, ""},
      {"GET", absl::StrCat(base, "/series"), {}, ""},
      {"GET",
       absl::StrCat(base, "/series/data"),
       {{"name", "train/loss"},
        {"name", "eval/loss"},
        {"points", "100"},
        {"x", "time"},
        {"from", "0"},
        {"to", "2e9"}},
       ""},
      {"GET", absl::StrCat(base, "/series.csv"), {{"name", "train/loss"}}, ""},
      {"GET", absl::StrCat(base, "/snapshots"), {}, ""},
      {"GET", absl::StrCat(base, "/snapshots/compare"), {{"a", "100"}, {"b", "200"}}, ""},
      {"GET", absl::StrCat(base, "/cluster"), {}, ""},
      {"GET", absl::StrCat(base, "/placement"), {}, ""},
      {"GET", absl::StrCat(base, "/report"), {{"step", "100"}}, ""},
      {"GET", absl::StrCat(base, "/model"), {}, ""},
      {"GET", absl::StrCat(base, "/form"), {}, ""},
      {"POST", absl::StrCat(base, "/nearest"), {}, R"({"features": {"user": 1}, "k": 3})"},
      {"GET", "/api/v1/events", {{"run", run}}, ""},
      {"POST", absl::StrCat(base, "/predict"), {}, R"({"features": [0.5, 1]})"},
      {"POST",
       absl::StrCat(base, "/predict"),
       {},
       R"({"features": {"user": 8, "seen": {"ids": [7, 0], "weights": [0.5, 2]}}})"},
      {"POST", absl::StrCat(base, "/actions/end_training"), {}, R"({"reason": "good enough"})"},
      {"POST", absl::StrCat(base, "/actions/set_mode"), {}, R"({"mode": "ssp:4"})"},
  };
}

class ApiNastyTest : public DashboardApiTest {
 protected:
  ApiNastyTest() {
    api_options_.token = kToken;
    api_options_.actions = &actions_;
    api_options_.new_predictor = [](const std::string&) { return std::make_unique<NoPredictor>(); };
    RunFiles(&memory_, "/etc").Write("passwd", kSecret);
    RunFiles(&memory_, "/jobs").Write("secret.json", absl::StrCat("{\"a\": \"", kSecret, "\"}"));
  }
  void CheckAnswer(const HttpRequest& request, const HttpResponse& response) {
    ASSERT_TRUE(response.status == 200 || (response.status >= 400 && response.status < 500))
        << RequestBytes(request) << response.status;
    if (response.events != nullptr) return;
    ASSERT_FALSE(absl::StrContains(response.body, kSecret)) << RequestBytes(request);
    if (response.content_type != kJson) {
      ASSERT_EQ(response.content_type, "text/csv; charset=utf-8");
      return;
    }
    const std::optional<Json> json = ParseJson(response.body);
    ASSERT_TRUE(json.has_value() && json->is_object()) << RequestBytes(request) << response.body;
    if (response.status != 200) {
      ASSERT_FALSE(TextAt(*json, "error").value_or("").empty()) << RequestBytes(request);
    }
  }
  void AskMany(uint64_t seed, const std::string& run) {
    Poll();
    NastyRequests requests(seed, Samples(run));
    int answered = 0;
    for (int i = 0; i < kRequests; ++i) {
      const HttpRequest request = requests.Next();
      const HttpResponse response = api().Handle(request);
      ASSERT_NO_FATAL_FAILURE(CheckAnswer(request, response));
      if (response.status == 200) ++answered;
    }
    // Some of them make sense all the same, else they would have come nowhere.
    EXPECT_GT(answered, kRequests / 20);
  }

  NoActions actions_;
};

TEST_F(ApiNastyTest, OnARunWithGoodFiles) {
  files().Write("status.json", TrainingStatus().dump());
  files().Write("train_config.textproto", TinyConfigText());
  files().Write("placement.json", R"({"balance": 1, "shards": [], "variables": []})");
  files().CommitSnapshot(100, 1);
  files().CommitSnapshot(200, 2);
  files().Append("eval/metrics.jsonl",
                 EvaluationLine(100, 1.7e9, 0.5, 0.9) + EvaluationLine(200, 1.7e9, 0.5, 0.9));
  files().Write("eval/reports/100.json", R"({"kind": "classification", "wrong": []})");
  std::string records;
  for (int step = 0; step < 500; ++step) records += ScalarRecord("loss", step, 1.7e9 + step, 1);
  files().Append("events.out.tfevents.1.host", records);
  AskMany(1, "mnist");
}

TEST_F(ApiNastyTest, OnARunOfAModelOfIds) {
  files().Write("train_config.textproto", IdConfigText());
  files().CommitSnapshot(100, 1);
  AskMany(4, "mnist");
}

TEST_F(ApiNastyTest, OnARunWithDamagedFiles) {
  files().Write("status.json", std::string(10'000, '['));
  files().Write("placement.json", "7");
  files().Write("train_config.textproto", std::string("\0\xff{", 3));
  files().Write("checkpoint",
                "model_checkpoint_path: \"../../etc/passwd\"\n"
                "all_model_checkpoint_paths: \"../../etc/passwd\"\n");
  files().Write("eval/metrics.jsonl", "\xff\n{\"step\":1,\"\xff\":1}\n{}\n");
  files().Write("eval/reports/100.json", "null");
  files().Write("eval/reports/99999999999999999999.json", "{}");
  files().Write("events.out.tfevents.1.host", std::string(100, '\xff'));
  files().Write("DONE", "x");
  AskMany(2, "mnist");
}

// A file of a run and a good content.
std::vector<std::pair<std::string, std::string>> GoodFiles() {
  const std::string scalar = ScalarRecord("worker-0/steps_per_second", 7, 1.7e9, 40);
  return {
      {"status.json", TrainingStatus().dump()},
      {"placement.json",
       R"({"balance": 1, "shards": [{"task": "ps-0", "bytes": 4}], "variables": []})"},
      {"train_config.textproto", TinyConfigText()},
      {"checkpoint",
       "model_checkpoint_path: \"model.ckpt-100\"\nall_model_checkpoint_paths: "
       "\"model.ckpt-100\"\n"},
      {"DONE", R"({"config_hash":"0000000000000001","step":500})"},
      {"events.out.tfevents.1.host", ScalarRecord("loss", 1, 1.7e9, 0.5f) + scalar},
      {"tasks/events.out.tfevents.1.host", scalar + scalar},
      {"eval/metrics.jsonl",
       EvaluationLine(100, 1.7e9, 0.5, 0.9) + EvaluationLine(200, 1.7e9, 0.4, 0.9)},
      {"eval/reports/100.json",
       R"({"step": 100, "kind": "binary", "roc": [[0, 0], [1, 1]], "wrong": []})"},
  };
}

// Cut off, or with a few bytes that are others.
std::string Damage(std::string content, std::mt19937_64* random) {
  static constexpr char kBytes[] = "\"{}[],:0-9e\n\xff";
  for (uint64_t n = 0, count = 1 + (*random)() % 4; n < count; ++n) {
    content[(*random)() % content.size()] = kBytes[(*random)() % (sizeof(kBytes) - 1)];
  }
  if ((*random)() % 4 == 0) content.resize((*random)() % content.size());
  return content;
}

TEST_F(ApiNastyTest, OnFilesThatWereCutOrChangedAnywhere) {
  constexpr int kRounds = 500;
  const auto good = GoodFiles();
  std::mt19937_64 random(3);
  run_options_.runs = {"/runs"};
  RunFiles(&memory_, "/runs");
  for (int round = 0; round < kRounds; ++round) {
    const RunFiles run(&memory_, absl::StrCat("/runs/", round));
    for (const auto& [name, content] : good) {
      run.Write(name, random() % 2 == 0 ? content : Damage(content, &random));
    }
  }
  Poll();
  EXPECT_EQ(runs().All().size(), 1u + kRounds - 1) << "at most 500 runs are shown";
  for (const auto& run : runs().All()) {
    for (const HttpSample& sample : Samples(run->id())) {
      HttpRequest request;
      request.method = sample.method;
      request.path = sample.path;
      request.query = sample.query;
      request.headers["content-type"] = kJson;
      request.body = sample.body;
      ASSERT_NO_FATAL_FAILURE(CheckAnswer(request, api().Handle(request)));
    }
  }
}

}  // namespace
}  // namespace keelson
