#include "core/serving/instances.h"

#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

using Json = nlohmann::json;

class InstancesTest : public testing::Test {
 protected:
  // `features` of the model, and `data`.
  void Open(const std::string& features, const std::string& data) {
    v1::ModelConfig model;
    const auto config = ParseTrainConfig("model { " + features +
                                             R"(
          tables { name: "t" dim: 1 }
          layers { name: "e" inputs: "user" embedding { table: "t" } }
          layers { name: "b" inputs: "seen" embedding_bag { table: "t" } }
          layers { name: "all" inputs: "e" inputs: "b" inputs: "age" concat {} }
          layers { dense { units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" } } )" +
                                             data,
                                         "job");
    ASSERT_TRUE(config.ok()) << config.status();
    const auto spec = InferModelSpec(config->model());
    ASSERT_TRUE(spec.ok()) << spec.status();
    auto reader = InstanceReader::Create(*config, *spec, FileSystem::Real());
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  static constexpr char kFeatures[] = R"(
      features { name: "user" id {} }
      features { name: "seen" bag {} }
      features { name: "age" dense { shape: 1 } })";
  void OpenFeatures() { Open(kFeatures, "data { generated_clicks {} }"); }
  void OpenColumns() {
    Open(kFeatures, R"(data { csv {}
        features { name: "seen" columns { column: "seen" integer {} separator: "|" } }
        features { name: "user" columns { column: "user" integer { missing: 99 } } }
        features { name: "age" columns { column: "age" number { missing: -1 } } } })");
  }
  Batch Read(const std::string& body) {
    auto batch = reader_->Read(Json::parse(body));
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? *std::move(batch) : Batch();
  }
  std::string Refusal(const std::string& body) {
    const absl::Status status = reader_->Read(Json::parse(body)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  std::unique_ptr<const InstanceReader> reader_;
};

TEST_F(InstancesTest, FeaturesOfEachInstance) {
  OpenFeatures();
  const Batch batch = Read(R"({"instances": [
      {"user": 18446744073709551615, "seen": [1, 2], "age": [30]},
      {"user": 7, "seen": [], "age": [0.5]}]})");
  ASSERT_EQ(batch.size(), 2);
  EXPECT_TRUE(batch.labels.empty());
  EXPECT_THAT(batch.features[0].ids, ElementsAre(18446744073709551615u, 7));
  EXPECT_THAT(batch.features[1].ids, ElementsAre(1, 2));
  EXPECT_THAT(batch.features[1].offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(batch.features[2].numbers.span(), ElementsAre(30, 0.5f));
}

TEST_F(InstancesTest, OrListsForEachFeature) {
  OpenFeatures();
  const Batch batch =
      Read(R"({"inputs": {"user": [1, 2], "seen": [[3], [4, 5]], "age": [[6], [7]]}})");
  EXPECT_THAT(batch.features[0].ids, ElementsAre(1, 2));
  EXPECT_THAT(batch.features[1].offsets, ElementsAre(0, 1, 3));
}

TEST_F(InstancesTest, ColumnsBecomeFeaturesAsInTraining) {
  OpenColumns();
  const Batch batch = Read(R"({"instances": [
      {"user": 5, "seen": "3|4", "age": 30},
      {"user": "6", "seen": [8, 9], "age": "31.5"},
      {"seen": null}]})");
  ASSERT_EQ(batch.size(), 3);
  EXPECT_THAT(batch.features[0].ids, ElementsAre(5, 6, 99));
  EXPECT_THAT(batch.features[1].ids, ElementsAre(3, 4, 8, 9));
  EXPECT_THAT(batch.features[1].offsets, ElementsAre(0, 2, 4, 4));
  EXPECT_THAT(batch.features[2].numbers.span(), ElementsAre(30, 31.5f, -1));
}

TEST_F(InstancesTest, OneInstanceOfColumns) {
  OpenColumns();
  EXPECT_TRUE(reader_->has_columns());
  const auto batch = reader_->ReadOne("columns", Json::parse(R"({"user": "5", "seen": "3|4"})"));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->features[0].ids, ElementsAre(5));
  EXPECT_THAT(batch->features[1].ids, ElementsAre(3, 4));
  EXPECT_THAT(batch->features[2].numbers.span(), ElementsAre(-1));
  const auto refusal = [&](const Json& columns) {
    return std::string(reader_->ReadOne("columns", columns).status().message());
  };
  EXPECT_EQ(refusal({{"age", "old"}}), "columns.age: expected a number, found \"old\"");
  EXPECT_EQ(refusal({{"name", "x"}}),
            "columns: expected the columns user, seen, age, found \"name\"");
  EXPECT_EQ(refusal(7), "columns: expected an object with the columns user, seen, age, found 7");
  OpenFeatures();
  EXPECT_FALSE(reader_->has_columns());
}

TEST_F(InstancesTest, BodiesThatAreNone) {
  OpenFeatures();
  EXPECT_EQ(Refusal("[]"),
            "body: expected an object with \"instances\" or \"inputs\", found a list of 0");
  EXPECT_EQ(Refusal("{}"),
            "body: expected an object with \"instances\" or \"inputs\", found an object");
  EXPECT_EQ(Refusal(R"({"instances": 3})"),
            "instances: expected a list of 1 to 10000 instances, found 3");
  EXPECT_EQ(Refusal(R"({"instances": []})"),
            "instances: expected a list of 1 to 10000 instances, found a list of 0");
  EXPECT_EQ(Refusal(R"({"inputs": []})"),
            "inputs: expected an object with a list for each name, found a list of 0");
  EXPECT_EQ(Refusal(R"({"inputs": {"age": 3}})"), "inputs.age: expected a list, found 3");
  EXPECT_EQ(Refusal(R"({"inputs": {"age": [1, 2], "user": [1]}})"),
            "inputs.user: expected 2 values, as others have, found 1");
  EXPECT_EQ(reader_->Read({{"instances", std::vector<int>(10001)}}).status().message(),
            "instances: expected a list of 1 to 10000 instances, found a list of 10001");
}

TEST_F(InstancesTest, InstancesThatAreNone) {
  OpenFeatures();
  EXPECT_EQ(Refusal(R"({"instances": [{"user": 1, "seen": [], "age": [1]},
                                      {"user": -1, "seen": [], "age": [1]}]})"),
            "instances[1]: features.user: expected an id from 0 to 18446744073709551615, found -1");
  OpenColumns();
  EXPECT_EQ(Refusal(R"({"instances": [7]})"),
            "instances[0]: expected an object with " + reader_->form() + ", found 7");
  EXPECT_EQ(Refusal(R"({"instances": [{"usr": 1}]})"),
            "instances[0]: expected " + reader_->form() + ", found \"usr\"");
  EXPECT_EQ(Refusal(R"({"instances": [{"age": true}]})"),
            "instances[0].age: expected a text, a number, or a list of either, found true");
  EXPECT_EQ(Refusal(R"({"instances": [{"age": [1, "x"]}]})"),
            "instances[0].age: expected a text, a number, or a list of either, found a list of 2");
  EXPECT_THAT(Refusal(R"({"instances": [{"user": 1}, {"age": "old"}]})"),
              StartsWith("instances[1].age: expected "));
}

}  // namespace
}  // namespace keelson
