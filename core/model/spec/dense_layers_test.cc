// The kinds of layers over dense values: their shapes, variables and operations, and what they
// refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/spec/model_config_testing.h"
#include "core/model/spec/model_spec.h"

namespace keelson {
namespace {

using testing::ElementsAre;

absl::StatusOr<ModelSpec> InferText(const std::string& model) {
  return InferModelSpec(ParseModel(model));
}

// Between the features and a dense layer for the loss.
absl::StatusOr<ModelSpec> InferWithin(const std::string& shape, const std::string& layers) {
  return InferText(absl::StrCat("input_shape: ", shape, " ", layers,
                                " layers { flatten {} } layers { dense { units: 2 } }"
                                " loss { kind: SOFTMAX_CROSS_ENTROPY }"));
}

struct Expected {
  const char* input;
  const char* layers;
  Shape output;
  int64_t operations;
  std::vector<std::string> variables;
};

TEST(DenseLayersTest, HaveShapesVariablesAndOperations) {
  const auto cross = [](const std::string& fields) {
    return absl::StrCat("layers { name: 'c' cross { ", fields,
                        " } inputs: 'features' inputs: 'features' }");
  };
  const std::string full = cross(""), low = cross("rank: 2"), bare = cross("rank: 1 no_bias: true");
  const Expected expected[] = {
      {"[4, 3, 2]", "layers { gelu {} }", {4, 3, 2}, 48, {}},
      {"5", "layers { silu {} }", {5}, 10, {}},
      {"[4, 3, 2]", "layers { softmax {} }", {4, 3, 2}, 96, {}},
      {"[4, 3, 2]",
       "layers { layer_norm {} }",
       {4, 3, 2},
       144,
       {"layer_norm_1/gamma[2]", "layer_norm_1/beta[2]"}},
      {"6", "layers { layer_norm { no_scale: true } }", {6}, 36, {"layer_norm_1/beta[6]"}},
      {"6", "layers { layer_norm { no_center: true } }", {6}, 36, {"layer_norm_1/gamma[6]"}},
      {"[4, 3, 2]", "layers { global_average_pool {} }", {2}, 24, {}},
      {"[4, 3, 2]", "layers { reshape { shape: [12, 2] } }", {12, 2}, 0, {}},
      {"[4, 3, 2]", "layers { reshape { shape: 24 } }", {24}, 0, {}},
      {"6", "layers { reshape { shape: [3, -1] } }", {3, 2}, 0, {}},
      {"6", "layers { reshape { shape: [-1, 1, 2] } }", {3, 1, 2}, 0, {}},
      {"5", "layers { dot {} inputs: 'features' inputs: 'features' }", {1}, 10, {}},
      {"5", "layers { cosine {} inputs: 'features' inputs: 'features' }", {1}, 30, {}},
      {"5",
       "layers { factorization_machine {} inputs: 'features' inputs: 'features' inputs: 'features' "
       "}",
       {1},
       2 * 5 + 4 * 10,
       {}},
      {"5",
       "layers { dot_interaction {} inputs: 'features' inputs: 'features' inputs: 'features' }",
       {3},
       3 * 10,
       {}},
      {"5",
       "layers { dot_interaction { diagonal: true } inputs: 'features' inputs: 'features' }",
       {3},
       3 * 10,
       {}},
      {"[4, 3, 2]", "layers { transpose { axes: [2, 0, 1] } }", {2, 4, 3}, 0, {}},
      {"5", full.c_str(), {5}, 50 + 5 + 10, {"c/kernel[5, 5]", "c/bias[5]"}},
      {"5", low.c_str(), {5}, 40 + 5 + 10, {"c/down_kernel[5, 2]", "c/kernel[2, 5]", "c/bias[5]"}},
      {"5", bare.c_str(), {5}, 20 + 10, {"c/down_kernel[5, 1]", "c/kernel[1, 5]"}},
  };
  for (const Expected& e : expected) {
    SCOPED_TRACE(e.layers);
    const auto spec = InferWithin(e.input, e.layers);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->layers[0].output, e.output) << spec->layers[0].output.ToString();
    EXPECT_EQ(spec->layers[0].operations(), e.operations);
    std::vector<std::string> variables;
    for (const size_t position : spec->layers[0].variables()) {
      const VariableSpec& variable = spec->variables[position];
      variables.push_back(variable.name + variable.shape.ToString());
    }
    EXPECT_EQ(variables, e.variables);
  }
}

TEST(DenseLayersTest, GlobalAveragePoolAlsoTakesPositions) {
  const auto spec =
      InferWithin("12", "layers { reshape { shape: [4, 3] } } layers { global_average_pool {} }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->layers[1].output, Shape({3}));
}

TEST(DenseLayersTest, InitialValuesAndEpsilon) {
  const auto spec =
      InferWithin("8",
                  "layers { layer_norm {} } layers { layer_norm { epsilon: 0.5 } } "
                  "layers { cross { rank: 2 kernel_initializer: HE_NORMAL } inputs: 'layer_norm_2' "
                  "inputs: 'layer_norm_2' }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FLOAT_EQ(spec->layers[0].epsilon, 1e-5f);
  EXPECT_EQ(spec->layers[1].epsilon, 0.5f);
  EXPECT_EQ(spec->variables[0].initializer.a, 1);  // gamma
  EXPECT_EQ(spec->variables[1].initializer.a, 0);  // beta
  // Of 8 features, and of 2.
  EXPECT_FLOAT_EQ(spec->variables[4].initializer.b, 0.5f);
  EXPECT_FLOAT_EQ(spec->variables[5].initializer.b, 1.0f);
  EXPECT_EQ(spec->parameters_of(spec->layers[2]), 8 * 2 + 2 * 8 + 8);
  EXPECT_THAT(spec->layers[2].variables(), ElementsAre(4, 5, 6));
}

TEST(DenseLayersTest, SayWhatTheyExpected) {
  const std::string cross = "inputs: 'features' inputs: 'features' }";
  const std::pair<std::string, std::string> wrong[] = {
      {"layers { layer_norm { epsilon: 0 } }",
       "model.layers[0].layer_norm.epsilon: expected > 0, found 0"},
      {"layers { layer_norm { epsilon: nan } }",
       "model.layers[0].layer_norm.epsilon: expected > 0, found nan"},
      {"layers { global_average_pool {} }",
       "model.layers[0].global_average_pool: expected an input [height, width, channels] or "
       "[positions, channels], found [6]"},
      {"layers { reshape {} }",
       "model.layers[0].reshape.shape: expected one to three extents, found 0"},
      {"layers { reshape { shape: [1, 2, 3, 1] } }",
       "model.layers[0].reshape.shape: expected one to three extents, found 4"},
      {"layers { reshape { shape: [3, 0] } }",
       "model.layers[0].reshape.shape[1]: expected > 0, or one -1, found 0"},
      {"layers { reshape { shape: [-1, -1] } }",
       "model.layers[0].reshape.shape[1]: expected > 0, or one -1, found -1"},
      {"layers { reshape { shape: [2, 2] } }",
       "model.layers[0].reshape.shape: expected the 6 elements of the input [6], found 4"},
      {"layers { reshape { shape: [4, -1] } }",
       "model.layers[0].reshape.shape: expected the 6 elements of the input [6], found a multiple "
       "of 4"},
      {"layers { reshape { shape: [3000000000, -1, 3000000000] } }",
       "model.layers[0].reshape: expected an output of at most 2147483647 elements, found "
       "[3000000000, 1, 3000000000]"},
      {"layers { dot {} }", "model.layers[0].inputs: expected 2 of dot, found 1"},
      {"layers { factorization_machine {} }",
       "model.layers[0].inputs: expected 2 or more of factorization_machine, found 1"},
      {"layers { cosine { epsilon: 0 } " + cross,
       "model.layers[0].cosine.epsilon: expected > 0, found 0"},
      {"layers { name: 'a' slice { size: 4 } } layers { dot {} inputs: 'features' inputs: 'a' }",
       "model.layers[1].dot: expected inputs [features] of one size, found [6] and [4]"},
      {"layers { name: 'a' reshape { shape: [2, 3] } } "
       "layers { factorization_machine {} inputs: 'a' inputs: 'a' }",
       "model.layers[1].factorization_machine: expected inputs [features] of one size, found "
       "[2, 3] and [2, 3]"},
      {"layers { dot_interaction {} }",
       "model.layers[0].inputs: expected 2 or more of dot_interaction, found 1"},
      {"layers { name: 'a' slice { size: 4 } } "
       "layers { dot_interaction {} inputs: 'features' inputs: 'a' }",
       "model.layers[1].dot_interaction: expected inputs [features] of one size, found [6] and "
       "[4]"},
      {"layers { reshape { shape: [2, 3] } } layers { transpose { axes: 1 } }",
       "model.layers[1].transpose.axes: expected each axis of the input [2, 3] once, found 1"},
      {"layers { reshape { shape: [2, 3] } } layers { transpose { axes: [1, 1] } }",
       "model.layers[1].transpose.axes[1]: expected an axis from 0 to 1 that was not named before, "
       "found 1"},
      {"layers { reshape { shape: [2, 3] } } layers { transpose { axes: [0, 2] } }",
       "model.layers[1].transpose.axes[1]: expected an axis from 0 to 1 that was not named before, "
       "found 2"},
      {"layers { transpose { axes: -1 } }",
       "model.layers[0].transpose.axes[0]: expected an axis from 0 to 0 that was not named before, "
       "found -1"},
      {"layers { cross {} }", "model.layers[0].inputs: expected 2 of cross, found 1"},
      {"layers { name: 'a' slice { size: 4 } } layers { cross {} inputs: 'features' inputs: 'a' }",
       "model.layers[1].cross: expected two inputs [features] of one shape, found [6] and [4]"},
      {"layers { name: 'a' reshape { shape: [2, 3] } } layers { cross {} inputs: 'a' inputs: 'a' }",
       "model.layers[1].cross: expected two inputs [features] of one shape, found [2, 3] and "
       "[2, 3]"},
      {"layers { cross { rank: 7 } " + cross,
       "model.layers[0].cross.rank: expected 0 to 6, found 7"},
      {"layers { cross { rank: -1 } " + cross,
       "model.layers[0].cross.rank: expected 0 to 6, found -1"},
      {"layers { cross { rank: 2 kernel_initializer: 9 } " + cross,
       "model.layers[0].cross.kernel_initializer: expected GLOROT_UNIFORM, HE_NORMAL or ZEROS, "
       "found 9"},
      {"layers { layer_norm {} variables_of: 'x' }",
       "model.layers[0].variables_of: expected dense, conv2d, embedding or embedding_bag, which "
       "can share variables, found "
       "layer_norm"},
  };
  for (const auto& [layers, message] : wrong) {
    EXPECT_EQ(InferWithin("6", layers).status(), absl::InvalidArgumentError(message)) << layers;
  }
  EXPECT_EQ(InferWithin("50000", "layers { cross {} " + cross).status(),
            absl::InvalidArgumentError("model.layers[0].cross: expected a kernel of at most "
                                       "2147483647 elements, found [50000, 50000]"));
}

}  // namespace
}  // namespace keelson
