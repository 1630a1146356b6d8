#include "cli/prediction_text.h"

#include <limits>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

ModelSpec ModelOf(const std::string& text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  const auto model = InferModelSpec(config);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

// Two records of two numbers and an id.
Batch TwoRecords(const ModelSpec& model) {
  Batch batch;
  Resize(2, model.records, &batch);
  for (int i = 0; i < 4; ++i) batch.features[0].numbers.data()[i] = 0.5f * static_cast<float>(i);
  batch.features[1].ids = {5, 0xffffffffffffffff};
  batch.labels[0].data()[0] = 2;
  batch.labels[0].data()[1] = 0;
  return batch;
}

constexpr char kClasses[] = R"(
    features { name: "numbers" dense { shape: 2 } }
    features { name: "user" id {} }
    tables { name: "users" dim: 1 }
    layers { name: "of_user" inputs: "user" embedding { table: "users" } }
    layers { inputs: "numbers" inputs: "of_user" concat {} }
    layers { dense { units: 3 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY label: "kind" })";

TEST(PredictionTextTest, ClassesHaveAColumnEach) {
  const ModelSpec model = ModelOf(kClasses);
  const PredictionText text(&model, {});
  EXPECT_EQ(text.Header(), "record,kind,probability_0,probability_1,probability_2\n");
  std::string lines;
  text.Append(10, TwoRecords(model), {0.25f, 0.5f, 0.25f, 1, 0, 1e-9f}, &lines);
  EXPECT_EQ(lines, "10,2,0.25,0.5,0.25\n11,0,1,0,1e-09\n");
}

TEST(PredictionTextTest, ClassesAsJson) {
  const ModelSpec model = ModelOf(kClasses);
  const PredictionText text(&model, {.json = true, .features = true});
  EXPECT_EQ(text.Header(), "");
  std::string lines;
  text.Append(0, TwoRecords(model),
              {0.25f, 0.5f, 0.25f, 1, 0, std::numeric_limits<float>::quiet_NaN()}, &lines);
  EXPECT_EQ(lines, R"({"record":0,"kind":2.0,"probabilities":[0.25,0.5,0.25],)"
                   R"("features":{"numbers":[0.0,0.5],"user":5}})"
                   "\n"
                   R"({"record":1,"kind":0.0,"probabilities":[1.0,0.0,null],)"
                   R"("features":{"numbers":[1.0,1.5],"user":18446744073709551615}})"
                   "\n");
}

TEST(PredictionTextTest, ScoresOfNumbers) {
  const ModelSpec model =
      ModelOf("input_shape: 2 layers { dense { units: 1 } } loss { kind: HUBER label: 'price' }");
  EXPECT_EQ(PredictionText(&model, {}).Header(), "record,price,score\n");
}

}  // namespace
}  // namespace keelson
