#include "core/model/spec/layer_graph.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {
namespace {

using testing::ElementsAre;

absl::StatusOr<std::vector<LayerNode>> Order(const std::string& layers) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(layers, &config)) << layers;
  return OrderLayers(config);
}

// "NAME(INPUT, ...)" of each layer.
std::vector<std::string> Ordered(const std::string& layers) {
  const auto nodes = Order(layers);
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  std::vector<std::string> text;
  if (!nodes.ok()) return text;
  for (const LayerNode& node : *nodes) {
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kFeaturesValue ? "features" : (*nodes)[input - 1].name);
    }
    text.push_back(absl::StrCat(node.name, "(", absl::StrJoin(inputs, ", "), ")"));
  }
  return text;
}

TEST(LayerGraphTest, LayersWithoutInputsAreAChain) {
  EXPECT_THAT(Ordered("layers { relu {} } layers { name: 'x' tanh {} } layers { relu {} }"),
              ElementsAre("relu_1(features)", "x(relu_1)", "relu_2(x)"));
}

TEST(LayerGraphTest, LayersComeAfterThoseWhoseOutputsTheyTake) {
  EXPECT_THAT(Ordered("layers { name: 'd' relu {} inputs: 'b' }"
                      "layers { name: 'b' relu {} inputs: 'a' }"
                      "layers { name: 'a' relu {} inputs: 'features' }"
                      "layers { name: 'c' relu {} inputs: 'a' }"
                      "layers { add {} inputs: 'c' inputs: 'd' inputs: 'features' }"),
              ElementsAre("a(features)", "b(a)", "d(b)", "c(a)", "add_1(c, d, features)"));
}

TEST(LayerGraphTest, OrdersAThousandLayers) {
  std::string layers;
  for (int i = 999; i > 0; --i) {
    absl::StrAppend(&layers, "layers { name: 'l", i, "' relu {} inputs: 'l", i - 1, "' } ");
  }
  const auto nodes = Order(layers +
                           "layers { name: 'l0' relu {} inputs: 'features' } "
                           "layers { name: 'last' relu {} inputs: 'l999' }");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ(nodes->front().name, "l0");
  EXPECT_EQ(nodes->back().name, "last");
}

TEST(LayerGraphTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "model.layers: expected at least one, found none"},
      {"layers {}",
       "model.layers[0]: expected a kind of layer (dense, conv2d, max_pool, ...), found none"},
      {"layers { relu {} inputs: 'x' }",
       "model.layers[0].inputs[0]: expected the name of a layer, or \"features\", found \"x\""},
      {"layers { name: 'a' relu {} } layers { name: 'a' relu {} }",
       "model.layers[1].name: another layer is already called \"a\""},
      {"layers { name: 'relu_2' relu {} } layers { relu {} }",
       "model.layers[1].name: another layer is already called \"relu_2\""},
      {"layers { name: 'features' relu {} } layers { relu {} inputs: 'features' }",
       "model.layers[1].inputs[0]: the model's input and a layer are both called \"features\""},
      {"layers { name: 'a' relu {} inputs: 'a' } layers { relu {} }",
       "model.layers[0].inputs: expected no cycle, found a -> a"},
      {"layers { name: 'in' relu {} } layers { name: 'a' add {} inputs: 'in' inputs: 'c' } "
       "layers { name: 'b' relu {} } layers { name: 'c' relu {} } layers { relu {} inputs: 'b' }",
       "model.layers[1].inputs: expected no cycle, found a -> b -> c -> a"},
      {"layers { name: 'a' relu {} } layers { name: 'b' relu {} inputs: 'features' }",
       "model.layers[0]: expected a layer that takes the output of \"a\", found none; the model's "
       "output is that of the last layer in the list, \"b\""},
      {"layers { name: 'a' relu {} inputs: 'b' } layers { name: 'b' relu {} inputs: 'a' }",
       "model.layers[0].inputs: expected no cycle, found a -> b -> a"},
  };
  for (const auto& [layers, message] : wrong) {
    EXPECT_EQ(Order(layers).status(), absl::InvalidArgumentError(message)) << layers;
  }
}

}  // namespace
}  // namespace keelson
