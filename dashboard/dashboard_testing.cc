#include "dashboard/dashboard_testing.h"

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/summary/tf_record.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

Json Task(const std::string& name, const std::string& role, int index) {
  return {
      {"task", name},     {"role", role},        {"index", index}, {"peer", "host:9"},
      {"state", "alive"}, {"since", 1.7e9 - 90}, {"restarts", 0},  {"device", "cpu, 2 threads"}};
}

Json Worker(int index) {
  Json json = Task(absl::StrCat("worker-", index), "worker", index);
  json["steps"] = 400;
  json["examples"] = 25600;
  json["push_retries"] = 0;
  json["row_ids"] = {{"all", 51200}, {"distinct", 12800}};
  json["steps_per_second"] = 26.0;
  json["examples_per_second"] = 1664.0;
  json["pushed_bytes_per_second"] = 1e7;
  json["pulled_bytes_per_second"] = 1e7;
  json["credit_wait_seconds"] = 0.0001;
  json["step_seconds"] = {{"input", 0.001}, {"pull", 0.002}, {"compute", 0.03}, {"push", 0.003}};
  json["staleness"] = {{"mean", 1.5},
                       {"max", 4},
                       {"bounds", {0, 1, 2, 4, 8, 16, 32, 64}},
                       {"counts", {10, 200, 150, 40, 0, 0, 0, 0, 0}}};
  return json;
}

Json Server(int index) {
  return {{"task", absl::StrCat("ps-", index)},
          {"address", absl::StrCat("host:222", index)},
          {"state", "alive"},
          {"since", 1.7e9 - 95},
          {"restarts", 0},
          {"shard_step", 1200},
          {"value_bytes", 471000},
          {"slot_bytes", 942000},
          {"clients", 3},
          {"pushed_bytes_per_second", 1.5e7},
          {"pulled_bytes_per_second", 1.5e7}};
}

void ExpectOk(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

}  // namespace

std::string ScalarRecord(const std::string& tag, int64_t step, double time, float value) {
  v1::Event event;
  event.set_step(step);
  event.set_wall_time(time);
  v1::Summary::Value* const scalar = event.mutable_summary()->add_value();
  scalar->set_tag(tag);
  scalar->set_simple_value(value);
  return EncodeTfRecord(event.SerializeAsString());
}

std::string EvaluationLine(int64_t step, double time, double loss, double accuracy) {
  const Json json = {{"step", step},         {"wall_time", time}, {"loss", loss},
                     {"accuracy", accuracy}, {"examples", 100},   {"seconds", 0.5}};
  return absl::StrCat(json.dump(), "\n");
}

Json TrainingStatus() {
  Json status = {
      {"time", 1.7e9},
      {"started", 1.7e9 - 100},
      {"phase", "TRAINING"},
      {"error", ""},
      {"mode", "async"},
      {"end_reason", ""},
      {"step", 1200},
      {"max_steps", 2000},
      {"epoch", 3.75},
      {"steps_per_epoch", 320},
      {"snapshot_step", 1000},
      {"learning_rate", 0.05},
      {"loss", 0.07},
      {"steps_per_second", 78.0},
      {"examples_per_second", 4992.0},
      {"eta_seconds", 10.25},
      {"staleness", 1.5},
      {"snapshot",
       {{"age_seconds", 4.0},
        {"write_seconds", 0.02},
        {"bytes", 5000},
        {"failures", 0},
        {"error", ""}}},
      {"chief",
       {{"task", "chief-0"}, {"peer", "host:8"}, {"since", 1.7e9 - 100}, {"restarts", 1}}}};
  status["members"] = {Worker(0), Worker(1), Worker(2), Task("evaluator-0", "evaluator", 0)};
  status["servers"] = {Server(0), Server(1)};
  return status;
}

std::string TinyConfigText() {
  return R"(model {
              name: "tiny"
              input_shape: 2
              layers { name: "scores" dense { units: 2 } }
              loss { kind: SOFTMAX_CROSS_ENTROPY }
            }
            data { class_names: "no" class_names: "yes" })";
}

std::string IdConfigText() {
  return R"(model {
              features { name: "user" id {} }
              features { name: "seen" bag { weighted: true } }
              layers { name: "a" inputs: "user" embedding { rows: 9 dim: 1 } }
              layers { name: "b" inputs: "seen" embedding_bag { rows: 8 dim: 1 } }
              layers { name: "both" add {} inputs: "a" inputs: "b" }
              loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
            }
            optimizer { groups { variables: "a/*" frozen: true } })";
}

std::string ColumnsConfigText() {
  return R"(model {
              features { name: "age" dense { shape: 1 } }
              features { name: "tags" bag {} }
              features { name: "city" id {} }
              layers { name: "a" inputs: "tags" embedding_bag { rows: 8 dim: 1 } }
              layers { name: "b" inputs: "city" embedding { rows: 3 dim: 1 } }
              layers { name: "all" concat {} inputs: "a" inputs: "b" inputs: "age" }
              layers { name: "score" dense { units: 1 } }
              loss { kind: SIGMOID_CROSS_ENTROPY label: "bought" }
            }
            data {
              csv {}
              features { name: "tags" columns { separator: "|" } }
              features { name: "city" columns { vocabulary { values: ["Oslo", "Rome"] } } }
            })";
}

std::string TowersConfigText() {
  return R"(model {
              features { name: "item" id {} }
              features { name: "user" id {} }
              features { name: "seen" bag {} }
              features { name: "context" dense { shape: 1 } }
              layers { name: "user_vector" inputs: "user" embedding { rows: 9 dim: 2 } }
              layers { name: "item_id" inputs: "item" embedding { rows: 5 dim: 2 } }
              layers { name: "seen_vector" inputs: "seen" embedding_bag { rows: 5 dim: 2 } }
              layers { name: "context_vector" inputs: "context" dense { units: 2 } }
              layers { name: "item_vector" add {}
                       inputs: "item_id" inputs: "seen_vector" inputs: "context_vector" }
              loss { kind: IN_BATCH_SOFTMAX queries: "user_vector" items: "item_vector" }
            }
            evaluation {
              metrics { accuracy {} }
              metrics { retrieval { measure: RECALL k: 3 item_feature: "item"
                                    exclude_features: "seen" } }
            })";
}

RunFiles::RunFiles(MemoryFileSystem* files, std::string model_dir)
    : files_(files), model_dir_(std::move(model_dir)) {
  ExpectOk(files_->CreateDirectories(model_dir_));
}

std::string RunFiles::Path(const std::string& name) const { return JoinPath(model_dir_, name); }

void RunFiles::Write(const std::string& name, const std::string& content) const {
  ExpectOk(files_->CreateDirectories(DirectoryOf(Path(name))));
  ExpectOk(WriteFileAtomically(Path(name), content, files_));
}

void RunFiles::Append(const std::string& name, const std::string& content) const {
  ExpectOk(files_->CreateDirectories(DirectoryOf(Path(name))));
  const auto file = files_->OpenForAppend(Path(name), /*truncate=*/false);
  ASSERT_TRUE(file.ok()) << file.status();
  ExpectOk((*file)->Append(content));
  ExpectOk((*file)->Close());
}

void RunFiles::Remove(const std::string& name) const { ExpectOk(files_->Remove(Path(name))); }

void RunFiles::CommitSnapshot(int64_t step, float scale, int64_t keep_max) const {
  CheckpointDirectory directory(files_, model_dir_, Clock::Real());
  const std::string prefix = directory.SnapshotPrefix(step);
  auto writer = BundleDataWriter::Create(files_, DataPath(prefix, 0, 1), 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<float> kernel = {scale, 0, 0, scale};
  ExpectOk((*writer)->AddTensor("scores/kernel", Shape({2, 2}), kernel));
  ExpectOk((*writer)->AddTensor("scores/kernel/Momentum", Shape({2, 2}), kernel));
  ExpectOk((*writer)->AddTensor("scores/bias", Shape({2}), std::vector<float>{0, 1}));
  auto entries = (*writer)->Finish();
  ASSERT_TRUE(entries.ok()) << entries.status();
  ExpectOk(WriteBundleIndex(files_, prefix, 1, *std::move(entries)));
  RetentionPolicy policy;
  policy.keep_max = keep_max;
  ExpectOk(directory.Commit(step, policy));
}

DashboardApiTest::DashboardApiTest() {
  run_options_.model_dir = "/jobs/mnist";
  run_options_.live = true;
  run_options_.file_system = &memory_;
  run_options_.clock = &clock_;
}

DashboardApi& DashboardApiTest::api() {
  if (api_ == nullptr) Poll();
  return *api_;
}

LiveUpdates& DashboardApiTest::updates() {
  if (updates_ == nullptr) Poll();
  return *updates_;
}

void DashboardApiTest::Poll() {
  if (runs_ == nullptr) {
    auto runs = RunSet::Create(run_options_);
    ASSERT_TRUE(runs.ok()) << runs.status();
    runs_ = *std::move(runs);
    updates_ = std::make_unique<LiveUpdates>(runs_.get(), &clock_);
    api_options_.runs = runs_.get();
    api_options_.updates = updates_.get();
    api_options_.clock = &clock_;
    api_ = std::make_unique<DashboardApi>(api_options_);
  }
  while (runs_->Poll()) {
  }
  updates_->Notify();
}

HttpResponse DashboardApiTest::Ask(const std::string& method, const std::string& target,
                                   const std::string& body, const std::string& authorization) {
  const std::optional<HttpTarget> parsed = ParseTarget(target);
  EXPECT_TRUE(parsed.has_value()) << target;
  HttpRequest request;
  request.method = method;
  request.path = parsed.value_or(HttpTarget()).path;
  request.query = parsed.value_or(HttpTarget()).query;
  request.client = "192.0.2.1";
  if (!body.empty()) request.headers["content-type"] = "application/json; charset=utf-8";
  if (!authorization.empty()) request.headers["authorization"] = authorization;
  request.body = body;
  return api().Handle(request);
}

Json DashboardApiTest::Get(const std::string& path) {
  const HttpResponse response = Ask("GET", "/api/v1" + path);
  EXPECT_EQ(response.status, 200) << path << ": " << response.body;
  EXPECT_EQ(response.content_type, kJson) << path;
  return ParseJson(response.body).value_or(Json());
}

std::string DashboardApiTest::Error(int status, const HttpResponse& response) {
  EXPECT_EQ(response.status, status) << response.body;
  return TextAt(ParseJson(response.body).value_or(Json()), "error").value_or("none");
}

}  // namespace keelson
