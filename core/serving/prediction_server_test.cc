#include "core/serving/prediction_server.h"

#include <string>

#include "core/http/http_testing.h"
#include "core/serving/served_model_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using ::testing::HasSubstr;

using Json = nlohmann::json;

class PredictionServerTest : public testing::Test {
 protected:
  void Start() {
    ServingFlags flags;
    flags.port = 0;
    flags.address = "127.0.0.1";
    auto server = PredictionServer::Start(job_.config(), flags, FileSystem::Real(), Clock::Real());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  HttpResponse Ask(const std::string& method, const std::string& path,
                   const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    return server_->Answer(request);
  }
  HttpResponse Predict(const std::string& body) {
    return Ask("POST", "/v1/models/clicks:predict", body);
  }
  // Waits until this step is served.
  void AwaitVersion(const std::string& step) {
    while (true) {
      const Json json = Json::parse(Ask("GET", "/v1/models/clicks").body);
      const Json& versions = json["model_version_status"];
      if (!versions.empty() && versions[0]["version"] == step) return;
    }
  }

  ServedJob job_;
  std::unique_ptr<PredictionServer> server_;
};

TEST_F(PredictionServerTest, AnswersInTheFormOfTensorFlowServing) {
  job_.Commit(10, 0);
  Start();
  AwaitVersion("10");
  HttpResponse answer = Predict(R"({"instances": [{"user": 7}, {"user": 8}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, kJson);
  EXPECT_EQ(Json::parse(answer.body),
            Json({{"predictions", {{0.5}, {0.5}}}, {"model_version", "10"}}));
  answer = Predict(R"({"inputs": {"user": [7]}})");
  EXPECT_EQ(Json::parse(answer.body),
            Json({{"outputs", Json::array({{0.5}})}, {"model_version", "10"}}));
  EXPECT_EQ(Json::parse(Ask("GET", "/v1/models/clicks").body)["model_version_status"][0]["state"],
            "AVAILABLE");
}

TEST_F(PredictionServerTest, TakesTheNextSnapshot) {
  job_.Commit(10, 0);
  Start();
  AwaitVersion("10");
  job_.Commit(20, 2);
  AwaitVersion("20");
  const Json answer = Json::parse(Predict(R"({"instances": [{"user": 7}]})").body);
  EXPECT_EQ(answer["model_version"], "20");
  EXPECT_NEAR(answer["predictions"][0][0].get<double>(), 0.880797, 1e-6);
}

TEST_F(PredictionServerTest, WithoutASnapshot) {
  Start();
  const HttpResponse answer = Predict(R"({"instances": [{"user": 7}]})");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("there is no snapshot yet"));
  EXPECT_EQ(Json::parse(Ask("GET", "/v1/models/clicks").body),
            Json({{"model_version_status", Json::array()}}));
}

TEST_F(PredictionServerTest, RequestsThatAreNone) {
  job_.Commit(10, 0);
  Start();
  AwaitVersion("10");
  EXPECT_EQ(Predict("{").status, 400);
  EXPECT_THAT(Predict("{").body, HasSubstr("body: expected JSON"));
  const HttpResponse answer = Predict(R"({"instances": [{"usr": 7}]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("instances[0]: features: expected user"));
  EXPECT_EQ(Ask("GET", "/v1/models/clicks:predict").status, 405);
  EXPECT_EQ(Ask("POST", "/v1/models/other:predict", "{}").status, 404);
  EXPECT_EQ(Ask("GET", "/").status, 404);
}

TEST_F(PredictionServerTest, ServesOverHttp) {
  job_.Commit(10, 0);
  Start();
  AwaitVersion("10");
  const auto answer = AskHttp(server_->port(), "POST", "/v1/models/clicks:predict", "",
                              R"({"instances": [{"user": 7}]})");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr(R"("predictions":[[0.5]])"));
}

}  // namespace
}  // namespace keelson
