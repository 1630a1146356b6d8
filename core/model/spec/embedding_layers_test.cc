#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/spec/model_config_testing.h"
#include "core/model/spec/model_spec.h"

namespace keelson {
namespace {

constexpr char kFourKinds[] = R"pb(
  features {
    name: "user"
    id {}
  }
  features {
    name: "item"
    id {}
  }
  features {
    name: "tags"
    bag {}
  }
  features {
    name: "seen"
    bag { weighted: true }
  }
  features {
    name: "x"
    dense { shape: 3 }
  }
)pb";

constexpr char kEmbeddingLayers[] = R"pb(
  layers {
    name: "u"
    inputs: "user"
    embedding { rows: 10 dim: 3 }
  }
  layers {
    name: "i"
    inputs: "item"
    embedding { rows: 20 dim: 3 }
  }
  layers {
    name: "t"
    inputs: "tags"
    embedding_bag { rows: 5 dim: 3 combiner: SQRTN }
  }
  layers {
    name: "s"
    inputs: "seen"
    embedding_bag { rows: 20 dim: 3 }
    variables_of: "i"
  }
  layers {
    name: "w"
    inputs: "item"
    embedding { rows: 15 dim: 1 }
  }
  layers {
    add {}
    inputs: "u"
    inputs: "i"
    inputs: "t"
    inputs: "s"
    inputs: "x"
  }
  layers {
    name: "d"
    dense { units: 1 }
  }
  layers {
    name: "sum"
    add {}
    inputs: "d"
    inputs: "w"
  }
  loss { kind: SIGMOID_CROSS_ENTROPY }
)pb";

absl::StatusOr<ModelSpec> InferEmbeddings(const std::string& text) {
  return InferModelSpec(ParseModel(text));
}

TEST(EmbeddingLayersTest, HaveRowsOfVariables) {
  const auto spec = InferEmbeddings(absl::StrCat(kFourKinds, kEmbeddingLayers));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::vector<LayerSpec>& layers = spec->layers;
  EXPECT_EQ(layers[0].output, Shape({3}));
  EXPECT_EQ(layers[2].combiner, Combiner::kSqrtN);
  EXPECT_EQ(layers[3].combiner, Combiner::kMean);
  EXPECT_EQ(layers[4].output, Shape({1}));
  std::vector<std::string> variables;
  for (const VariableSpec& variable : spec->variables) {
    variables.push_back(absl::StrCat(variable.name, " ", variable.shape.ToString()));
  }
  EXPECT_THAT(variables, testing::ElementsAre("u/embeddings [10, 3]", "i/embeddings [20, 3]",
                                              "t/embeddings [5, 3]", "w/embeddings [15, 1]",
                                              "d/kernel [3, 1]", "d/bias [1]"));
  EXPECT_EQ(spec->variables[0].initializer.kind, Initializer::Kind::kUniform);
  EXPECT_EQ(spec->variables[0].initializer.a, -0.05f);
  EXPECT_EQ(spec->variables[0].initializer.b, 0.05f);
  EXPECT_EQ(layers[3].embeddings, layers[1].embeddings);
  EXPECT_EQ(spec->parameters_of(layers[1]), 60);
  EXPECT_EQ(spec->parameters_of(layers[3]), 0);
  EXPECT_EQ(layers[0].operations(), 0);
  EXPECT_EQ(layers[3].operations(), 6);
}

TEST(EmbeddingLayersTest, TheSmallestEmbeddingLimitsTheIds) {
  const auto spec = InferEmbeddings(absl::StrCat(kFourKinds, kEmbeddingLayers));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->records.FeaturesText(),
            "user (id of 10), item (id of 15), tags (bag of 5 ids), seen (weighted bag of 20 ids), "
            "x ([3])");
  EXPECT_EQ(spec->records.only_numbers(), nullptr);
}

TEST(EmbeddingLayersTest, AModelOfOneFeatureOfIdsTakesNoNumbers) {
  const auto spec = InferEmbeddings(R"pb(
    features {
      name: "user"
      id {}
    }
    layers { embedding { rows: 10 dim: 1 } }
    loss { kind: SIGMOID_CROSS_ENTROPY })pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->layers[0].name, "embedding_1");
  EXPECT_EQ(spec->records.only_numbers(), nullptr);
}

TEST(EmbeddingLayersTest, WrongOnesAreRefusedWithTheirPlaces) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"(features { name: "f" } layers { flatten {} })",
       "model.features[0]: expected a kind (dense, id or bag), found none"},
      {R"(features { name: "f" id {} } layers { dense { units: 1 } })",
       "model.layers[0].dense: expected numbers, found the id \"f\""},
      {R"(features { name: "f" bag {} } layers { flatten {} })",
       "model.layers[0].flatten: expected numbers, found the bag \"f\""},
      {R"(features { name: "f" id {} } features { name: "g" dense { shape: 2 } }
          layers { concat {} inputs: "g" inputs: "f" })",
       "model.layers[0].concat: expected numbers, found the id \"f\""},
      {R"(input_shape: 3 layers { embedding { rows: 2 dim: 1 } })",
       "model.layers[0].embedding: expected a feature of the kind id, found the numbers "
       "\"features\""},
      {R"(input_shape: 3 layers { name: "d" dense { units: 1 } }
          layers { embedding_bag { rows: 2 dim: 1 } })",
       "model.layers[1].embedding_bag: expected a feature of the kind bag, found the numbers "
       "\"d\""},
      {R"(features { name: "f" bag {} } layers { embedding { rows: 2 dim: 1 } })",
       "model.layers[0].embedding: expected a feature of the kind id, found the bag \"f\""},
      {R"(features { name: "f" id {} } layers { embedding_bag { rows: 2 dim: 1 } })",
       "model.layers[0].embedding_bag: expected a feature of the kind bag, found the id \"f\""},
      {R"(features { name: "f" id {} } features { name: "g" id {} }
          layers { embedding { rows: 2 dim: 1 } inputs: "f" inputs: "g" })",
       "model.layers[0].inputs: expected 1 of embedding, found 2"},
      {R"(features { name: "f" id {} } layers { embedding { dim: 1 } })",
       "model.layers[0].embedding.rows: expected > 0, found 0"},
      {R"(features { name: "f" id {} } layers { embedding { rows: 3 dim: -1 } })",
       "model.layers[0].embedding.dim: expected > 0, found -1"},
      {R"(features { name: "f" id {} } layers { embedding { rows: 1000000000 dim: 3 } })",
       "model.layers[0].embedding: expected embeddings of at most 2147483647 elements, found "
       "[1000000000, 3]"},
      {R"(features { name: "f" id {} } features { name: "g" bag {} }
          layers { name: "a" embedding { rows: 3 dim: 2 } inputs: "f" }
          layers { embedding_bag { rows: 4 dim: 2 } inputs: "g" variables_of: "a" }
          layers { add {} inputs: "a" inputs: "embedding_bag_1" })",
       "model.layers[1].embedding_bag: expected embeddings [3, 2], those of \"a\", found [4, 2]"},
      {R"(features { name: "f" id {} } features { name: "x" dense { shape: 3 } }
          layers { name: "a" dense { units: 2 } inputs: "x" }
          layers { embedding { rows: 3 dim: 2 } inputs: "f" variables_of: "a" }
          layers { add {} inputs: "a" inputs: "embedding_1" })",
       "model.layers[1].variables_of: expected the name of an embedding or embedding_bag layer "
       "that "
       "is computed before this one, found \"a\""},
      {R"(features { name: "f" id {} } layers { embedding { rows: 3 dim: 2 } }
          layers { tanh {} variables_of: "embedding_1" })",
       "model.layers[1].variables_of: expected dense, conv2d, embedding or embedding_bag, which "
       "can "
       "share variables, found tanh"},
  };
  for (const auto& [text, message] : wrong) {
    EXPECT_EQ(InferEmbeddings(text + " loss { kind: SIGMOID_CROSS_ENTROPY }").status(),
              absl::InvalidArgumentError(message));
  }
  v1::ModelConfig config;
  config.add_features()->mutable_bag();
  config.mutable_features(0)->set_name("f");
  v1::EmbeddingBag* const bag = config.add_layers()->mutable_embedding_bag();
  bag->set_combiner(static_cast<v1::EmbeddingBag::Combiner>(7));
  EXPECT_EQ(InferModelSpec(config).status(),
            absl::InvalidArgumentError("model.layers[0].embedding_bag.combiner: expected SUM, MEAN "
                                       "or SQRTN, found 7"));
}

}  // namespace
}  // namespace keelson
