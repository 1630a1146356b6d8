#include "core/model/spec/layer_graph.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/spec/model_config_testing.h"

namespace keelson {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kOne = {"features"};

absl::StatusOr<LayerGraph> Order(const std::string& layers,
                                 const std::vector<std::string>& features = kOne) {
  return OrderLayers(ParseModel(layers), features);
}

// "NAME(INPUT, ...)" of each layer.
std::vector<std::string> Ordered(const std::string& layers,
                                 const std::vector<std::string>& features = kOne) {
  const auto nodes = Order(layers, features);
  const GraphValues values(features.size());
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  std::vector<std::string> text;
  if (!nodes.ok()) return text;
  for (const LayerNode& node : nodes->layers) {
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(values.IsFeature(input) ? features[input]
                                               : nodes->layers[values.LayerOf(input)].name);
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
  EXPECT_EQ(nodes->layers.front().name, "l0");
  EXPECT_EQ(nodes->layers.back().name, "last");
}

TEST(LayerGraphTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "model.layers: expected at least one, found none"},
      {"layers {}",
       "model.layers[0]: expected a kind of layer (dense, conv2d, max_pool, ...), found none"},
      {"layers { relu {} inputs: 'x' }",
       "model.layers[0].inputs[0]: expected the name of a layer or of a feature (features), "
       "found \"x\""},
      {"layers { name: 'a' relu {} } layers { name: 'a' relu {} }",
       "model.layers[1].name: another layer is already called \"a\""},
      {"layers { name: 'relu_2' relu {} } layers { relu {} }",
       "model.layers[1].name: another layer is already called \"relu_2\""},
      {"layers { name: 'features' relu {} } layers { relu {} inputs: 'features' }",
       "model.layers[1].inputs[0]: a feature and a layer are both called \"features\""},
      {"layers { name: 'a' relu {} inputs: 'a' } layers { relu {} }",
       "model.layers[0].inputs: expected no cycle, found a -> a"},
      {"layers { name: 'in' relu {} } layers { name: 'a' add {} inputs: 'in' inputs: 'c' } "
       "layers { name: 'b' relu {} } layers { name: 'c' relu {} } layers { relu {} inputs: 'b' }",
       "model.layers[1].inputs: expected no cycle, found a -> b -> c -> a"},
      {"layers { name: 'a' relu {} } layers { name: 'b' relu {} inputs: 'features' }",
       "model.layers[0]: expected a layer or a loss that takes the output of \"a\", found none; "
       "the "
       "loss takes that of \"b\""},
      {"layers { name: 'a' relu {} inputs: 'b' } layers { name: 'b' relu {} inputs: 'a' }",
       "model.layers[0].inputs: expected no cycle, found a -> b -> a"},
  };
  for (const auto& [layers, message] : wrong) {
    EXPECT_EQ(Order(layers).status(), absl::InvalidArgumentError(message)) << layers;
  }
}

TEST(LayerGraphTest, LossesTakeTheLastLayerOrTheOneThatTheyName) {
  const std::string layers =
      "layers { name: 'a' relu {} } layers { name: 'b' relu {} inputs: 'd' }"
      "layers { name: 'd' relu {} inputs: 'a' }";
  const auto scores = [&](const std::string& losses) {
    const auto graph = Order(layers + losses);
    EXPECT_TRUE(graph.ok()) << graph.status();
    std::vector<std::string> names;
    if (!graph.ok()) return names;
    for (const std::vector<ValueId>& inputs : graph->of_losses) {
      std::vector<std::string> of_loss;
      for (const ValueId value : inputs) {
        of_loss.push_back(graph->layers[GraphValues(1).LayerOf(value)].name);
      }
      names.push_back(absl::StrJoin(of_loss, "+"));
    }
    return names;
  };
  EXPECT_THAT(scores("losses { scores: 'b' } losses {} losses { scores: 'a' }"),
              ElementsAre("b", "d", "a"));
  EXPECT_THAT(scores("loss { scores: 'b' }"), ElementsAre("b"));
  EXPECT_THAT(scores("losses {} losses { kind: IN_BATCH_SOFTMAX queries: 'b' items: 'a' }"),
              ElementsAre("d", "b+a"));
  EXPECT_EQ(
      Order(layers + "loss { kind: IN_BATCH_SOFTMAX queries: 'b' }").status(),
      absl::InvalidArgumentError("model.loss.items: expected the name of a layer, found \"\""));
  EXPECT_EQ(Order(layers + "loss { kind: IN_BATCH_SOFTMAX scores: 'b' }").status(),
            absl::InvalidArgumentError(
                "model.loss.scores: expected none of IN_BATCH_SOFTMAX, which takes queries and "
                "items, found \"b\""));
  EXPECT_EQ(Order(layers + "losses { scores: 'b' } losses { scores: 'c' }").status(),
            absl::InvalidArgumentError(
                "model.losses[1].scores: expected the name of a layer, found \"c\""));
  EXPECT_EQ(Order(layers + "loss { scores: 'features' }").status(),
            absl::InvalidArgumentError(
                "model.loss.scores: expected the name of a layer, found \"features\""));
}

TEST(LayerGraphTest, LayersTakeSeveralFeatures) {
  EXPECT_THAT(Ordered("layers { name: 'a' relu {} inputs: 'user' } layers { name: 'b' tanh {} }"
                      "layers { add {} inputs: 'b' inputs: 'item' inputs: 'user' }",
                      {"item", "user"}),
              ElementsAre("a(user)", "b(a)", "add_1(b, item, user)"));
}

TEST(LayerGraphTest, SaysWhatIsWrongWithSeveralFeatures) {
  const std::vector<std::string> features = {"item", "user"};
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"layers { relu {} }",
       "model.layers[0].inputs: expected one or more, for the model has 2 features, found none"},
      {"layers { relu {} inputs: 'user' }",
       "model.features[0]: expected a layer that takes \"item\", found none"},
      {"layers { add {} inputs: 'user' inputs: 'features' }",
       "model.layers[0].inputs[1]: expected the name of a layer or of a feature (item, user), "
       "found \"features\""},
      {"layers { name: 'user' relu {} inputs: 'item' } layers { relu {} inputs: 'user' }",
       "model.layers[1].inputs[0]: a feature and a layer are both called \"user\""},
  };
  for (const auto& [layers, message] : wrong) {
    EXPECT_EQ(Order(layers, features).status(), absl::InvalidArgumentError(message)) << layers;
  }
}

}  // namespace
}  // namespace keelson
