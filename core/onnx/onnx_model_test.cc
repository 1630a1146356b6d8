#include "core/onnx/onnx_model.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec ModelOf(const std::string& text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  const auto model = InferModelSpec(config);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

// Zeros, and no rows.
OnnxValues ValuesOf(const ModelSpec& model) {
  OnnxValues values;
  for (const VariableSpec& variable : model.variables)
    values.variables.emplace_back(variable.shape);
  for (const TableSpec& table : model.tables) {
    values.tables.push_back({{}, {}, std::vector<float>(table.dim, 0.5f)});
  }
  return values;
}

onnx::Graph GraphOf(const ModelSpec& model, const OnnxValues& values) {
  const auto exported = MakeOnnxModel(model, values);
  EXPECT_TRUE(exported.ok()) << exported.status();
  return exported->graph();
}

std::vector<std::string> NamesOf(const google::protobuf::RepeatedPtrField<onnx::Value>& values) {
  std::vector<std::string> names;
  for (const onnx::Value& value : values) names.push_back(value.name());
  return names;
}

const onnx::Tensor* FindInitializer(const onnx::Graph& graph, const std::string& name) {
  for (const onnx::Tensor& tensor : graph.initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

// Each value is there before it is used, and only once.
void ExpectOrdered(const onnx::Graph& graph) {
  std::set<std::string> known;
  for (const std::string& name : NamesOf(graph.input())) EXPECT_TRUE(known.insert(name).second);
  for (const onnx::Tensor& tensor : graph.initializer()) {
    EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
  }
  for (const onnx::Node& node : graph.node()) {
    EXPECT_FALSE(node.op_type().empty());
    for (const std::string& input : node.input()) EXPECT_TRUE(known.contains(input)) << input;
    EXPECT_TRUE(known.insert(node.output(0)).second) << node.output(0);
  }
  for (const std::string& name : NamesOf(graph.output())) EXPECT_TRUE(known.contains(name)) << name;
}

constexpr char kClicks[] = R"(
    name: "clicks"
    features { name: "user" id {} }
    features { name: "seen" bag { weighted: true } }
    features { name: "age" dense { shape: 1 } }
    tables { name: "users" dim: 2 }
    layers { name: "of_user" inputs: "user" embedding { table: "users" } }
    layers { name: "of_seen" inputs: "seen" embedding_bag { table: "users" combiner: SQRTN } }
    layers { name: "fm" inputs: "of_user" inputs: "of_seen" factorization_machine {} }
    layers { name: "pairs" inputs: "of_user" inputs: "of_seen" dot_interaction { diagonal: true } }
    layers { name: "all" inputs: "fm" inputs: "pairs" inputs: "age" concat {} }
    layers { name: "crossed" inputs: "all" inputs: "all" cross { rank: 2 } }
    layers { name: "click" dense { units: 1 } }
    loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" })";

TEST(OnnxModelTest, FeaturesAreInputsAndScoresOutputs) {
  const ModelSpec model = ModelOf(kClicks);
  const onnx::Graph graph = GraphOf(model, ValuesOf(model));
  EXPECT_THAT(NamesOf(graph.input()),
              ElementsAre("user", "seen", "seen_offsets", "seen_weights", "age"));
  EXPECT_THAT(NamesOf(graph.output()), ElementsAre("scores", "probabilities"));
  EXPECT_EQ(graph.name(), "clicks");
  ExpectOrdered(graph);
}

TEST(OnnxModelTest, OfATableAllRowsAndThatOfOtherIds) {
  const ModelSpec model = ModelOf(kClicks);
  OnnxValues values = ValuesOf(model);
  values.tables[0].ids = {7, 0xffffffffffffffff};
  values.tables[0].rows = {1, 2, 3, 4};
  const onnx::Graph graph = GraphOf(model, values);
  ExpectOrdered(graph);
  const onnx::Tensor* const rows = FindInitializer(graph, "users");
  ASSERT_NE(rows, nullptr);
  EXPECT_THAT(rows->dims(), ElementsAre(3, 2));
  const std::vector<float> expected = {1, 2, 3, 4, 0.5f, 0.5f};
  EXPECT_EQ(rows->raw_data(),
            std::string(reinterpret_cast<const char*>(expected.data()), 6 * sizeof(float)));
  // Both features' ids are found at once.
  std::vector<onnx::Node> encoders;
  for (const onnx::Node& node : graph.node()) {
    if (node.op_type() == "LabelEncoder") encoders.push_back(node);
  }
  ASSERT_EQ(encoders.size(), 1u);
  EXPECT_EQ(encoders[0].domain(), "ai.onnx.ml");
  EXPECT_THAT(encoders[0].attribute(0).ints(), ElementsAre(7, -1));
  EXPECT_THAT(encoders[0].attribute(1).ints(), ElementsAre(0, 1));
  EXPECT_EQ(encoders[0].attribute(2).i(), 2);
}

TEST(OnnxModelTest, QueriesAndItemsOfTwoTowers) {
  const ModelSpec model = ModelOf(R"(
      features { name: "user" id {} }
      features { name: "item" id {} }
      layers { name: "query" inputs: "user" embedding { rows: 5 dim: 2 } }
      layers { name: "of_item" inputs: "item" embedding { rows: 9 dim: 2 } }
      loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "of_item" label: "pairs" })");
  const onnx::Graph graph = GraphOf(model, ValuesOf(model));
  ExpectOrdered(graph);
  EXPECT_THAT(NamesOf(graph.output()), ElementsAre("queries", "items"));
}

TEST(OnnxModelTest, SeveralLossesHaveTheirScores) {
  const ModelSpec model = ModelOf(R"(
      input_shape: 3
      layers { name: "classes" inputs: "features" dense { units: 4 } }
      layers { name: "price" inputs: "features" dense { units: 1 } }
      losses { kind: SOFTMAX_CROSS_ENTROPY scores: "classes" label: "kind" }
      losses { kind: HUBER scores: "price" label: "cost" })");
  const onnx::Graph graph = GraphOf(model, ValuesOf(model));
  ExpectOrdered(graph);
  EXPECT_THAT(NamesOf(graph.output()), ElementsAre("scores", "probabilities", "scores_cost"));
}

TEST(OnnxModelTest, ImagesHaveAllOtherLayers) {
  const ModelSpec model = ModelOf(R"(
      input_shape: 8 input_shape: 8 input_shape: 3
      layers { conv2d { filters: 4 kernel_size: 3 padding: SAME } }
      layers { batch_norm {} }
      layers { name: "a" gelu {} }
      layers { max_pool { size: 2 } }
      layers { avg_pool { size: 3 stride: 2 padding: SAME } }
      layers { layer_norm { no_scale: true } }
      layers { silu {} }
      layers { transpose { axes: [2, 0, 1] } }
      layers { reshape { shape: [2, -1] } }
      layers { softmax {} }
      layers { tanh {} }
      layers { name: "mean" global_average_pool {} }
      layers { scale { factor: 2 } }
      layers { slice { begin: 1 size: 2 } }
      layers { sigmoid {} }
      layers { name: "h" dropout { rate: 0.5 } }
      layers { name: "r" relu {} }
      layers { name: "s" inputs: "h" inputs: "r" multiply {} }
      layers { name: "d" inputs: "h" inputs: "s" dot {} }
      layers { name: "c" inputs: "h" inputs: "s" cosine {} }
      layers { name: "sum" inputs: "d" inputs: "c" add {} }
      loss { kind: MEAN_SQUARED_ERROR })");
  const onnx::Graph graph = GraphOf(model, ValuesOf(model));
  ExpectOrdered(graph);
  EXPECT_THAT(NamesOf(graph.output()), ElementsAre("scores"));
}

TEST(OnnxModelTest, AModelBeyondWhatAFileCanHold) {
  const ModelSpec model = ModelOf(R"(
      features { name: "user" id {} }
      tables { name: "users" dim: 1024 }
      layers { inputs: "user" embedding { table: "users" } }
      layers { dense { units: 1 } }
      loss { kind: MEAN_SQUARED_ERROR })");
  OnnxValues values = ValuesOf(model);
  values.tables[0].ids.resize(522000);
  const absl::Status status = MakeOnnxModel(model, values).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected fewer than 2147483647"));
}

}  // namespace
}  // namespace keelson
