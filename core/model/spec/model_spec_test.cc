#include "core/model/spec/model_spec.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/spec/model_config_testing.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::StatusOr<ModelSpec> Infer(const std::string& text) {
  return InferModelSpec(ParseModel(text));
}

// A model of `layers` over images of 28 x 28 x 1, with a loss for ten classes.
absl::StatusOr<ModelSpec> InferLayers(const std::string& layers) {
  return Infer("input_shape: [28, 28, 1] " + layers + " loss { kind: SOFTMAX_CROSS_ENTROPY }");
}

// The layer's spec within a model that also flattens and classifies its output.
LayerSpec InferOne(const std::string& input, const std::string& layer) {
  const auto spec = Infer("input_shape: " + input + " layers { " + layer +
                          " } layers { flatten {} } layers { dense { units: 10 } } "
                          "loss { kind: SOFTMAX_CROSS_ENTROPY }");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? spec->layers[0] : LayerSpec();
}

std::vector<std::string> Variables(const ModelSpec& spec) {
  std::vector<std::string> variables;
  for (const VariableSpec& v : spec.variables) variables.push_back(v.name + v.shape.ToString());
  return variables;
}

TEST(ModelSpecTest, InfersLeNet) {
  const auto spec = InferLayers(R"(
      layers { conv2d { filters: 32 kernel_size: 5 } } layers { relu {} }
      layers { max_pool { size: 2 } }
      layers { name: "second" conv2d { filters: 64 kernel_size: 5 } } layers { relu {} }
      layers { max_pool { size: 2 } } layers { flatten {} }
      layers { dense { units: 512 } } layers { dropout { rate: 0.5 } }
      layers { dense { units: 10 no_bias: true } })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<std::string> layers;
  for (const LayerSpec& layer : spec->layers) {
    layers.push_back(layer.name + layer.output.ToString());
  }
  EXPECT_THAT(layers,
              ElementsAre("conv2d_1[24, 24, 32]", "relu_1[24, 24, 32]", "max_pool_1[12, 12, 32]",
                          "second[8, 8, 64]", "relu_2[8, 8, 64]", "max_pool_2[4, 4, 64]",
                          "flatten_1[1024]", "dense_1[512]", "dropout_1[512]", "dense_2[10]"));
  EXPECT_THAT(Variables(*spec), ElementsAre("conv2d_1/kernel[5, 5, 1, 32]", "conv2d_1/bias[32]",
                                            "second/kernel[5, 5, 32, 64]", "second/bias[64]",
                                            "dense_1/kernel[1024, 512]", "dense_1/bias[512]",
                                            "dense_2/kernel[512, 10]"));
  EXPECT_EQ(spec->layers[3].kernel, 2);
  EXPECT_EQ(spec->layers[3].bias, 3);
  EXPECT_EQ(spec->layers[9].kernel, 6);
  EXPECT_EQ(spec->layers[9].bias, std::nullopt);
  EXPECT_EQ(spec->layers[8].dropout_rate, 0.5f);
  EXPECT_EQ(spec->main_loss().outputs, 10);
  EXPECT_EQ(spec->main_loss().kind, LossKind::kSoftmaxCrossEntropy);
}

TEST(ModelSpecTest, InfersAGraph) {
  const auto spec = Infer(R"(
      input_shape: [4, 4, 2]
      layers { name: "a" conv2d { filters: 3 kernel_size: 3 padding: SAME } }
      layers { name: "b" conv2d { filters: 3 kernel_size: 3 padding: SAME } }
      layers { name: "sum" add {} inputs: "b" inputs: "a" }
      layers { name: "gate" multiply {} inputs: "sum" inputs: "a" }
      layers { name: "all" concat {} inputs: "gate" inputs: "features" inputs: "sum" }
      layers { name: "part" slice { begin: 2 size: 5 } }
      layers { name: "half" scale { factor: 0.5 } }
      layers { flatten {} } layers { dense { units: 10 } }
      loss { kind: SOFTMAX_CROSS_ENTROPY })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<std::string> layers;
  for (const LayerSpec& layer : spec->layers) {
    layers.push_back(layer.name + layer.output.ToString());
  }
  EXPECT_THAT(layers, ElementsAre("a[4, 4, 3]", "b[4, 4, 3]", "sum[4, 4, 3]", "gate[4, 4, 3]",
                                  "all[4, 4, 8]", "part[4, 4, 5]", "half[4, 4, 5]", "flatten_1[80]",
                                  "dense_1[10]"));
  EXPECT_THAT(spec->layers[4].inputs,
              ElementsAre(spec->values().OutputOf(3), 0u, spec->values().OutputOf(2)));
  EXPECT_THAT(spec->layers[4].input_shapes,
              ElementsAre(Shape({4, 4, 3}), Shape({4, 4, 2}), Shape({4, 4, 3})));
  EXPECT_EQ(spec->layers[5].slice_begin, 2);
  EXPECT_EQ(spec->layers[6].scale_factor, 0.5f);
}

TEST(ModelSpecTest, LayersShareVariables) {
  const auto spec = Infer(R"(
      input_shape: 4 layers { name: "a" dense { units: 4 } }
      layers { name: "b" dense { units: 4 } variables_of: "a" }
      layers { dense { units: 1 } } loss { kind: MEAN_SQUARED_ERROR })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Variables(*spec), ElementsAre("a/kernel[4, 4]", "a/bias[4]", "dense_3/kernel[4, 1]",
                                            "dense_3/bias[1]"));
  EXPECT_THAT(spec->layers[1].variables(), ElementsAre(0, 1));
}

TEST(ModelSpecTest, SaysWhatIsWrongWithAGraph) {
  const std::string a = "layers { name: 'a' dense { units: 4 } } ";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {a + "layers { add {} }", "model.layers[1].inputs: expected 2 or more of add, found 1"},
      {a + "layers { multiply {} inputs: 'a' inputs: 'a' inputs: 'a' }",
       "model.layers[1].inputs: expected 2 of multiply, found 3"},
      {a + "layers { concat {} inputs: 'a' }",
       "model.layers[1].inputs: expected 2 or more of concat, found 1"},
      {a + "layers { relu {} inputs: 'a' inputs: 'a' }",
       "model.layers[1].inputs: expected 1 of relu, found 2"},
      {a + "layers { add {} inputs: 'a' inputs: 'features' }",
       "model.layers[1].add: expected inputs of one shape, found [4] and [3]"},
      {a + "layers { slice { begin: 2 size: 3 } }",
       "model.layers[1].slice: expected a part of the 4 features or channels, found 3 from 2 on"},
      {a + "layers { slice { begin: -1 size: 3 } }",
       "model.layers[1].slice: expected a part of the 4 features or channels, found 3 from -1 on"},
      {a + "layers { slice {} }", "model.layers[1].slice.size: expected > 0, found 0"},
      {a + "layers { scale {} }",
       "model.layers[1].scale.factor: expected a finite number, found none"},
      {a + "layers { scale { factor: nan } }",
       "model.layers[1].scale.factor: expected a finite number, found nan"},
      {a + "layers { relu {} variables_of: 'a' }",
       "model.layers[1].variables_of: expected dense, conv2d, embedding or embedding_bag, which "
       "can share variables, found "
       "relu"},
      {a + "layers { dense { units: 4 } variables_of: 'x' }",
       "model.layers[1].variables_of: expected the name of a dense layer that is computed before "
       "this one, found \"x\""},
      {a + "layers { dense { units: 4 } variables_of: 'a' }",
       "model.layers[1].dense: expected a kernel [3, 4], that of \"a\", found [4, 4]"},
      {a + "layers { dense { units: 4 no_bias: true } inputs: 'features' variables_of: 'a' } "
           "layers { add {} inputs: 'a' inputs: 'dense_2' }",
       "model.layers[1].dense.no_bias: expected what \"a\" has, found true"},
      {a + "layers { dense { units: 4 kernel_initializer: ZEROS } variables_of: 'a' }",
       "model.layers[1].variables_of: expected no kernel_initializer beside it, found one"},
  };
  for (const auto& [layers, message] : wrong) {
    EXPECT_EQ(Infer("input_shape: 3 " + layers + " loss { kind: SOFTMAX_CROSS_ENTROPY }").status(),
              absl::InvalidArgumentError(message))
        << layers;
  }
  const auto images = Infer(
      "input_shape: [4, 4, 2] layers { name: 'a' max_pool { size: 2 } } "
      "layers { concat {} inputs: 'a' inputs: 'features' } loss { kind: SOFTMAX_CROSS_ENTROPY }");
  EXPECT_EQ(images.status(), absl::InvalidArgumentError(
                                 "model.layers[1].concat: expected inputs whose shapes differ "
                                 "in the last extent only, found [2, 2, 2] and [4, 4, 2]"));
}

TEST(ModelSpecTest, PadsAsTensorFlowDoes) {
  const LayerSpec same =
      InferOne("[28, 27, 3]", "conv2d { filters: 4 kernel_size: 5 padding: SAME }");
  EXPECT_EQ(same.output, Shape({28, 27, 4}));
  EXPECT_EQ(same.pad_top, 2);
  EXPECT_EQ(same.pad_left, 2);
  // Rows: 4 outputs need 9 rows, one more than there are: it is at the end. Columns: 4 need 9 too,
  // two more: one on each side.
  const LayerSpec strided =
      InferOne("[8, 7, 3]", "conv2d { filters: 4 kernel_size: 3 stride: 2 padding: SAME }");
  EXPECT_EQ(strided.output, Shape({4, 4, 4}));
  EXPECT_EQ(strided.pad_top, 0);
  EXPECT_EQ(strided.pad_left, 1);
  const LayerSpec valid = InferOne("[8, 7, 3]", "conv2d { filters: 4 kernel_size: 3 stride: 2 }");
  EXPECT_EQ(valid.output, Shape({3, 3, 4}));
  EXPECT_EQ(valid.pad_top, 0);
}

TEST(ModelSpecTest, PoolsStepByTheirSizeUnlessTold) {
  EXPECT_EQ(InferOne("[7, 7, 3]", "max_pool { size: 2 }").output, Shape({3, 3, 3}));
  EXPECT_EQ(InferOne("[7, 7, 3]", "avg_pool { size: 2 padding: SAME }").output, Shape({4, 4, 3}));
  EXPECT_EQ(InferOne("[7, 7, 3]", "avg_pool { size: 3 stride: 1 }").output, Shape({5, 5, 3}));
}

TEST(ModelSpecTest, InitializesByFanInAndFanOut) {
  const auto spec = InferLayers(R"(
      layers { conv2d { filters: 8 kernel_size: 3 } }
      layers { conv2d { filters: 4 kernel_size: 3 kernel_initializer: HE_NORMAL } }
      layers { flatten {} }
      layers { dense { units: 10 kernel_initializer: ZEROS } })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const Initializer& glorot = spec->variables[0].initializer;
  EXPECT_EQ(glorot.kind, Initializer::Kind::kUniform);
  EXPECT_FLOAT_EQ(glorot.b, static_cast<float>(std::sqrt(6.0 / (9 * 1 + 9 * 8))));
  EXPECT_EQ(glorot.a, -glorot.b);
  const Initializer& he = spec->variables[2].initializer;
  EXPECT_EQ(he.kind, Initializer::Kind::kNormal);
  EXPECT_EQ(he.a, 0);
  EXPECT_FLOAT_EQ(he.b, static_cast<float>(std::sqrt(2.0 / (9 * 8))));
  for (int zero : {1, 3, 4, 5}) {
    EXPECT_EQ(spec->variables[zero].initializer.kind, Initializer::Kind::kConstant);
    EXPECT_EQ(spec->variables[zero].initializer.a, 0);
  }
}

TEST(ModelSpecTest, BatchNormHasVariablesPerChannel) {
  const auto spec = InferLayers(R"(
      layers { conv2d { filters: 8 kernel_size: 3 no_bias: true } }
      layers { batch_norm {} } layers { relu {} } layers { flatten {} }
      layers { dense { units: 10 } }
      layers { name: "last" batch_norm { momentum: 0.5 epsilon: 0.25 no_scale: true } })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(
      Variables(*spec),
      ElementsAre("conv2d_1/kernel[3, 3, 1, 8]", "batch_norm_1/gamma[8]", "batch_norm_1/beta[8]",
                  "batch_norm_1/moving_mean[8]", "batch_norm_1/moving_variance[8]",
                  "dense_1/kernel[5408, 10]", "dense_1/bias[10]", "last/beta[10]",
                  "last/moving_mean[10]", "last/moving_variance[10]"));
  const LayerSpec& image = spec->layers[1];
  EXPECT_EQ(image.output, Shape({26, 26, 8}));
  EXPECT_FLOAT_EQ(image.epsilon, 1e-3f);
  EXPECT_THAT(image.variables(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(image.gamma, 1);
  EXPECT_EQ(image.moving_variance, 4);
  const LayerSpec& features = spec->layers[5];
  EXPECT_EQ(features.output, Shape({10}));
  EXPECT_EQ(features.epsilon, 0.25f);
  EXPECT_EQ(features.gamma, std::nullopt);
  EXPECT_THAT(features.variables(), ElementsAre(7, 8, 9));
  EXPECT_THAT(spec->layers[4].variables(), ElementsAre(5, 6));
  EXPECT_THAT(spec->layers[2].variables(), IsEmpty());

  const std::vector<VariableSpec>& variables = spec->variables;
  for (const int trained : {0, 1, 2, 5, 6, 7}) EXPECT_TRUE(variables[trained].trained()) << trained;
  for (const int average : {3, 4}) EXPECT_EQ(variables[average].average_decay, 0.99f);
  for (const int average : {8, 9}) EXPECT_EQ(variables[average].average_decay, 0.5f);
  for (const int one : {1, 4, 9}) EXPECT_EQ(variables[one].initializer.a, 1) << one;
  for (const int zero : {2, 3, 7, 8}) EXPECT_EQ(variables[zero].initializer.a, 0) << zero;
}

TEST(ModelSpecTest, BatchNormMayNormalizeAlone) {
  const auto spec = InferLayers(
      "layers { flatten {} } layers { batch_norm { no_scale: true no_center: true } } "
      "layers { dense { units: 10 } }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->layers[1].variables(), ElementsAre(0, 1));
  EXPECT_EQ(spec->variables[0].name, "batch_norm_1/moving_mean");
}

TEST(ModelSpecTest, AveragesAreNothingToTrain) {
  EXPECT_EQ(InferLayers("layers { flatten {} } "
                        "layers { batch_norm { no_scale: true no_center: true } }")
                .status()
                .message(),
            "model.layers: expected a layer with variables to train, such as dense, found none");
  EXPECT_TRUE(InferLayers("layers { flatten {} } layers { batch_norm { no_scale: true } }").ok());
}

TEST(ModelSpecTest, TakesTheOtherLosses) {
  for (const char* loss : {"SIGMOID_CROSS_ENTROPY", "MEAN_SQUARED_ERROR", "HUBER"}) {
    const auto spec = Infer(
        std::string("input_shape: 5 layers { dense { units: 1 } } loss { kind: ") + loss + " }");
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_STREQ(LossKindName(spec->main_loss().kind), loss);
    EXPECT_EQ(spec->main_loss().outputs, 1);
  }
}

struct ErrorCase {
  const char* config;
  const char* message;
};

TEST(ModelSpecTest, ReadsFeatures) {
  const auto spec = Infer(R"(
      features { name: "user" dense { shape: 3 } } features { name: "images" dense { shape: [2, 5] } }
      layers { inputs: "images" flatten {} }
      layers { inputs: "user" inputs: "flatten_1" concat {} } layers { dense { units: 10 } }
      loss { kind: SOFTMAX_CROSS_ENTROPY })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->records.features.size(), 2u);
  EXPECT_EQ(spec->records.features[0].name, "user");
  EXPECT_EQ(spec->records.features[1].shape, Shape({2, 5}));
  EXPECT_EQ(spec->records.only_numbers(), nullptr);
  EXPECT_EQ(spec->layers[1].output, Shape({13}));
  EXPECT_EQ(spec->NameOf(spec->layers[1].inputs[0]), "user");
  EXPECT_EQ(spec->NameOf(spec->layers[1].inputs[1]), "flatten_1");
  ASSERT_EQ(spec->records.labels.size(), 1u);
  EXPECT_EQ(spec->records.labels[0].name, "label");
  EXPECT_EQ(spec->records.labels[0].num_classes, 10);
}

TEST(ModelSpecTest, RefusesFeatures) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"input_shape: 3 features { name: 'a' dense { shape: 3 } }",
       "model.input_shape: expected nothing beside model.features, found a shape"},
      {"features { dense { shape: 3 } }",
       "model.features[0].name: expected letters, digits, '.', '_' or '-', the first of them a "
       "letter, a digit or '.', found \"\""},
      {"features { name: 'a' }",
       "model.features[0]: expected a kind (dense, id or bag), found none"},
      {"features { name: 'a' dense {} }",
       "model.features[0].dense.shape: expected one to three extents, found 0"},
      {"features { name: 'a' dense { shape: [1, 1, 1, 1] } }",
       "model.features[0].dense.shape: expected one to three extents, found 4"},
      {"features { name: 'a' dense { shape: [3, 0] } }",
       "model.features[0].dense.shape[1]: expected > 0, found 0"},
      {"features { name: 'a' dense { shape: 1 } } features { name: 'a' dense { shape: 1 } }",
       "model.features[1].name: another feature is already called \"a\""},
  };
  for (const auto& [features, message] : wrong) {
    EXPECT_EQ(Infer(features + " layers { dense { units: 2 } } "
                               "loss { kind: SOFTMAX_CROSS_ENTROPY }")
                  .status(),
              absl::InvalidArgumentError(message));
  }
}

constexpr char kTwoLosses[] = R"(
    input_shape: 4 layers { name: "body" dense { units: 4 } }
    layers { name: "click" dense { units: 1 } }
    layers { name: "kind" inputs: "body" dense { units: 3 } } )";

TEST(ModelSpecTest, ReadsSeveralLosses) {
  const auto spec = Infer(absl::StrCat(kTwoLosses, R"(
      losses { kind: SIGMOID_CROSS_ENTROPY scores: "click" label: "clicked" weight: 0.25 }
      losses { kind: SOFTMAX_CROSS_ENTROPY })"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->losses.size(), 2u);
  EXPECT_EQ(spec->LossText(),
            "0.25 SIGMOID_CROSS_ENTROPY of click + SOFTMAX_CROSS_ENTROPY of kind");
  EXPECT_EQ(spec->NameOf(spec->losses[0].inputs[0]), "click");
  EXPECT_EQ(spec->losses[0].weight, 0.25f);
  EXPECT_EQ(spec->losses[0].outputs, 1);
  EXPECT_EQ(spec->NameOf(spec->losses[1].inputs[0]), "kind");
  EXPECT_EQ(spec->losses[1].weight, 1);
  EXPECT_EQ(spec->losses[1].label, 1u);
  ASSERT_EQ(spec->records.labels.size(), 2u);
  EXPECT_EQ(spec->records.labels[0].name, "clicked");
  EXPECT_EQ(spec->records.labels[0].num_classes, 2);
  EXPECT_EQ(spec->records.labels[1].name, "label");
  EXPECT_EQ(spec->records.labels[1].num_classes, 3);
}

TEST(ModelSpecTest, ReadsALossOfQueriesAndItems) {
  const std::string towers =
      "input_shape: 4 layers { name: 'user' dense { units: 3 } } "
      "layers { name: 'item' inputs: 'features' dense { units: 3 } } ";
  const auto plain =
      Infer(towers + "loss { kind: IN_BATCH_SOFTMAX queries: 'user' items: 'item' }");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->LossText(), "IN_BATCH_SOFTMAX of user and item");
  EXPECT_EQ(plain->main_loss().outputs, 1);
  EXPECT_EQ(plain->main_loss().dim, 3);
  EXPECT_EQ(plain->main_loss().temperature, 1);
  EXPECT_EQ(plain->main_loss().num_classes(), 0);
  EXPECT_FALSE(plain->main_loss().label.has_value());
  EXPECT_TRUE(plain->records.labels.empty());

  const auto full = Infer(towers +
                          "loss { kind: IN_BATCH_SOFTMAX queries: 'item' items: 'user' "
                          "temperature: 0.5 log_probability_label: 'p' weight_label: 'label' }");
  ASSERT_TRUE(full.ok()) << full.status();
  const LossSpec& loss = full->main_loss();
  EXPECT_EQ(full->NameOf(loss.inputs.at(0)), "item");
  EXPECT_EQ(full->NameOf(loss.inputs.at(1)), "user");
  EXPECT_EQ(loss.temperature, 0.5f);
  ASSERT_EQ(full->records.labels.size(), 2u);
  EXPECT_EQ(full->records.labels.at(*loss.log_probability_label).name, "p");
  EXPECT_EQ(full->records.labels.at(*loss.weight_label).name, "label");
  EXPECT_TRUE(full->records.labels.at(*loss.weight_label).weighs);
}

TEST(ModelSpecTest, ReadsTheWeightsOfRecords) {
  const auto spec = Infer(absl::StrCat(kTwoLosses, R"(
      losses { kind: HUBER scores: "click" label: "paid" delta: 0.5 weight_label: "trust" }
      losses { kind: SOFTMAX_CROSS_ENTROPY weight_label: "trust" }
      losses { kind: SIGMOID_CROSS_ENTROPY scores: "click" label: "trust" weight_label: "paid" })"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->LossText(),
            "HUBER of click weighted by trust + SOFTMAX_CROSS_ENTROPY of kind weighted by trust + "
            "SIGMOID_CROSS_ENTROPY of click weighted by paid");
  EXPECT_EQ(spec->losses[0].delta, 0.5f);
  ASSERT_EQ(spec->records.labels.size(), 3u);
  EXPECT_EQ(spec->records.labels[0].name, "paid");
  EXPECT_EQ(spec->records.labels[0].num_classes, 0);
  EXPECT_EQ(spec->records.labels[1].name, "trust");
  EXPECT_EQ(spec->records.labels[1].num_classes, 2);
  EXPECT_EQ(spec->records.labels[2].name, "label");
  EXPECT_TRUE(spec->records.labels[0].weighs);
  EXPECT_TRUE(spec->records.labels[1].weighs);
  EXPECT_FALSE(spec->records.labels[2].weighs);
  EXPECT_EQ(spec->losses[0].weight_label, 1u);
  EXPECT_EQ(spec->losses[1].weight_label, 1u);
  EXPECT_EQ(spec->losses[2].weight_label, 0u);
  EXPECT_EQ(spec->losses[2].label, 1u);
  EXPECT_EQ(
      Infer("input_shape: 5 layers { dense { units: 1 } } loss { kind: HUBER }")->losses[0].delta,
      1);
}

TEST(ModelSpecTest, RefusesLosses) {
  const std::string click = "losses { kind: SIGMOID_CROSS_ENTROPY scores: 'click' label: 'c' } ";
  const std::string kind = "losses { kind: SOFTMAX_CROSS_ENTROPY } ";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {click + kind + "loss { kind: SOFTMAX_CROSS_ENTROPY }",
       "model.loss: expected nothing beside model.losses, found a loss"},
      {click + "losses { scores: 'kind' }",
       "model.losses[1].kind: expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, "
       "MEAN_SQUARED_ERROR, HUBER or IN_BATCH_SOFTMAX, found none"},
      {click + "losses { kind: MEAN_SQUARED_ERROR }",
       "model.losses[1]: MEAN_SQUARED_ERROR takes [1], found the output [3] of \"kind\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY label: 'c' }",
       "model.losses[1].label: another loss already has the label \"c\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY weight: 0 }",
       "model.losses[1].weight: expected > 0, found 0"},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY weight: inf }",
       "model.losses[1].weight: expected > 0, found inf"},
      {click + kind + "losses { kind: HUBER scores: 'click' label: 'h' delta: 0 }",
       "model.losses[2].delta: expected > 0, found 0"},
      {click + kind + "losses { kind: HUBER scores: 'click' label: 'h' delta: nan }",
       "model.losses[2].delta: expected > 0, found nan"},
      {click + "losses { kind: HUBER }",
       "model.losses[1]: HUBER takes [1], found the output [3] of \"kind\""},
      {click + kind + "losses { kind: MEAN_SQUARED_ERROR scores: 'click' label: 'h' delta: 2 }",
       "model.losses[2].delta: expected none of MEAN_SQUARED_ERROR, found 2"},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY weight_label: 'label' }",
       "model.losses[1].weight_label: expected another label than the loss's, found \"label\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY label: '-' }",
       "model.losses[1].label: expected letters, digits, '.', '_' or '-', the first of them a "
       "letter, a digit or '.', found \"-\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY queries: 'body' }",
       "model.losses[1].queries: expected none of SOFTMAX_CROSS_ENTROPY, found \"body\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY items: 'body' }",
       "model.losses[1].items: expected none of SOFTMAX_CROSS_ENTROPY, found \"body\""},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY temperature: 2 }",
       "model.losses[1].temperature: expected none of SOFTMAX_CROSS_ENTROPY, found 2"},
      {click + "losses { kind: SOFTMAX_CROSS_ENTROPY log_probability_label: 'p' }",
       "model.losses[1].log_probability_label: expected none of SOFTMAX_CROSS_ENTROPY, found "
       "\"p\""},
      {click + kind + "losses { kind: IN_BATCH_SOFTMAX queries: 'body' items: 'body' label: 'b' }",
       "model.losses[2].items: expected another layer than the queries', found \"body\""},
      {click + kind + "losses { kind: IN_BATCH_SOFTMAX queries: 'body' items: 'kind' label: 'b' }",
       "model.losses[2]: IN_BATCH_SOFTMAX takes queries and items [dim] of one size, found the "
       "outputs [4] of \"body\" and [3] of \"kind\""},
      {click + kind +
           "losses { kind: IN_BATCH_SOFTMAX queries: 'click' items: 'price' label: 'b' }",
       "model.losses[2].items: expected the name of a layer, found \"price\""},
      {"layers { name: 'raw' inputs: 'features' slice { size: 1 } } " + click +
           "losses { kind: SOFTMAX_CROSS_ENTROPY scores: 'kind' } "
           "losses { kind: IN_BATCH_SOFTMAX queries: 'click' items: 'raw' label: 'b' }",
       "model.losses[2].items: expected a layer that depends on variables, found \"raw\""},
      {"layers { name: 'other' inputs: 'body' dense { units: 1 } } " + click +
           "losses { kind: SOFTMAX_CROSS_ENTROPY scores: 'kind' } "
           "losses { kind: IN_BATCH_SOFTMAX queries: 'click' items: 'other' label: 'b' "
           "temperature: 0 }",
       "model.losses[2].temperature: expected > 0, found 0"},
      {"layers { name: 'raw' inputs: 'features' slice { size: 1 } } " + click +
           "losses { kind: SOFTMAX_CROSS_ENTROPY scores: 'kind' } "
           "losses { kind: MEAN_SQUARED_ERROR scores: 'raw' label: 'r' }",
       "model.losses[2].scores: expected a layer that depends on variables, found \"raw\""},
  };
  for (const auto& [losses, message] : wrong) {
    EXPECT_EQ(Infer(kTwoLosses + losses).status(), absl::InvalidArgumentError(message)) << losses;
  }
}

TEST(ModelSpecTest, RefusesModels) {
  const std::string dense = "layers { dense { units: 10 } } ";
  const std::string softmax = "loss { kind: SOFTMAX_CROSS_ENTROPY } ";
  const auto message = [](const std::string& text) {
    const auto spec = Infer(text);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(spec.status().message());
  };
  EXPECT_EQ(message(dense + softmax),
            "model.input_shape: expected [features] or [height, width, channels], found 0 extents");
  EXPECT_EQ(message("input_shape: [2, 3]" + dense + softmax),
            "model.input_shape: expected [features] or [height, width, channels], found 2 extents");
  EXPECT_EQ(message("input_shape: [28, -1, 1]" + dense + softmax),
            "model.input_shape[1]: expected > 0, found -1");
  EXPECT_EQ(message("input_shape: [3000000, 3000000, 3]" + dense + softmax),
            "model.input_shape: expected an example of at most 2147483647 elements, found "
            "[3000000, 3000000, 3]");
  EXPECT_EQ(message("input_shape: 3 " + softmax),
            "model.layers: expected at least one, found none");
  EXPECT_EQ(message("input_shape: 3 layers { relu {} }" + softmax),
            "model.layers: expected a layer with variables to train, such as dense, found none");
  EXPECT_EQ(message("input_shape: 3 " + dense),
            "model.loss.kind: expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, "
            "MEAN_SQUARED_ERROR, HUBER or IN_BATCH_SOFTMAX, found none");
  EXPECT_EQ(message("input_shape: 3 " + dense + "loss { kind: SIGMOID_CROSS_ENTROPY }"),
            "model.loss: SIGMOID_CROSS_ENTROPY takes [1], found the output [10] of \"dense_1\"");
  EXPECT_EQ(message("input_shape: 3 " + dense + "loss { kind: MEAN_SQUARED_ERROR }"),
            "model.loss: MEAN_SQUARED_ERROR takes [1], found the output [10] of \"dense_1\"");
  EXPECT_EQ(message("input_shape: 3 layers { dense { units: 1 } }" + softmax),
            "model.loss: SOFTMAX_CROSS_ENTROPY takes [classes], 2 or more, found the output [1] of "
            "\"dense_1\"");
}

TEST(ModelSpecTest, RefusesALossOverAnImage) {
  EXPECT_EQ(
      InferLayers("layers { conv2d { filters: 2 kernel_size: 28 } }").status().message(),
      "model.loss: SOFTMAX_CROSS_ENTROPY takes [classes], 2 or more, found the output [1, 1, 2] "
      "of \"conv2d_1\"");
}

class LayerErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(LayerErrorTest, IsRefusedWithTheFieldsPath) {
  const auto spec = InferLayers(GetParam().config);
  EXPECT_EQ(spec.status(), absl::InvalidArgumentError(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    ModelSpec, LayerErrorTest,
    testing::Values(
        ErrorCase{"layers { name: 'x' }",
                  "model.layers[0]: expected a kind of layer (dense, "
                  "conv2d, max_pool, ...), found none"},
        ErrorCase{"layers { dense { units: 10 } }",
                  "model.layers[0].dense: expected an input [features], found [28, 28, 1]; a "
                  "flatten layer is missing"},
        ErrorCase{"layers { flatten {} } layers { relu {} } layers { dense { units: -3 } }",
                  "model.layers[2].dense.units: expected > 0, found -3"},
        ErrorCase{"layers { flatten {} } layers { dense {} }",
                  "model.layers[1].dense.units: expected > 0, found 0"},
        ErrorCase{"layers { flatten {} } layers { dense { units: 9223372036854775807 } }",
                  "model.layers[1].dense: expected a kernel of at most 2147483647 elements, found "
                  "[784, 9223372036854775807]"},
        ErrorCase{"layers { flatten {} } layers { dense { units: 3000000 } }",
                  "model.layers[1].dense: expected a kernel of at most 2147483647 elements, found "
                  "[784, 3000000]"},
        ErrorCase{"layers { flatten {} } layers { dense { units: 10 kernel_initializer: 9 } }",
                  "model.layers[1].dense.kernel_initializer: expected GLOROT_UNIFORM, HE_NORMAL or "
                  "ZEROS, found 9"},
        ErrorCase{"layers { conv2d { kernel_size: 3 } }",
                  "model.layers[0].conv2d.filters: expected > 0, found 0"},
        ErrorCase{"layers { conv2d { filters: 3 } }",
                  "model.layers[0].conv2d.kernel_size: expected > 0, found 0"},
        ErrorCase{"layers { conv2d { filters: 3 kernel_size: 3 stride: -1 } }",
                  "model.layers[0].conv2d.stride: expected > 0, found -1"},
        ErrorCase{"layers { conv2d { filters: 3 kernel_size: 29 } }",
                  "model.layers[0].conv2d: a window of 29 does not fit the input's 28 rows or "
                  "columns; use padding: SAME"},
        ErrorCase{"layers { conv2d { filters: 3 kernel_size: 3 padding: 7 } }",
                  "model.layers[0].conv2d.padding: expected VALID or SAME, found 7"},
        ErrorCase{"layers { conv2d { filters: 3 kernel_size: 60000 padding: SAME } }",
                  "model.layers[0].conv2d: expected a kernel of at most 2147483647 elements, found "
                  "[60000, 60000, 1, 3]"},
        ErrorCase{"layers { conv2d { filters: 3 kernel_size: 3 stride: 3000000000 } }",
                  "model.layers[0].conv2d: expected a window and a stride of at most 2147483647, "
                  "found 3000000000"},
        ErrorCase{"layers { conv2d { filters: 4000000 kernel_size: 3 padding: SAME } }",
                  "model.layers[0].conv2d: expected an output of at most 2147483647 elements, "
                  "found [28, 28, 4000000]"},
        ErrorCase{"layers { max_pool {} }", "model.layers[0].max_pool.size: expected > 0, found 0"},
        ErrorCase{"layers { avg_pool { size: 2 stride: -2 } }",
                  "model.layers[0].avg_pool.stride: expected > 0, found -2"},
        ErrorCase{"layers { flatten {} } layers { max_pool { size: 2 } }",
                  "model.layers[1].max_pool: expected an input [height, width, channels], found "
                  "[784]"},
        ErrorCase{"layers { flatten {} } layers { conv2d { filters: 2 kernel_size: 2 } }",
                  "model.layers[1].conv2d: expected an input [height, width, channels], found "
                  "[784]"},
        ErrorCase{"layers { dropout { rate: 1 } }",
                  "model.layers[0].dropout.rate: expected >= 0 and < 1, found 1"},
        ErrorCase{"layers { dropout { rate: -0.5 } }",
                  "model.layers[0].dropout.rate: expected >= 0 and < 1, found -0.5"},
        ErrorCase{"layers { dropout { rate: nan } }",
                  "model.layers[0].dropout.rate: expected >= 0 and < 1, found nan"},
        ErrorCase{"layers { batch_norm { momentum: 1 } }",
                  "model.layers[0].batch_norm.momentum: expected >= 0 and < 1, found 1"},
        ErrorCase{"layers { batch_norm { momentum: nan } }",
                  "model.layers[0].batch_norm.momentum: expected >= 0 and < 1, found nan"},
        ErrorCase{"layers { relu {} } layers { batch_norm { epsilon: 0 } }",
                  "model.layers[1].batch_norm.epsilon: expected > 0, found 0"},
        ErrorCase{"layers { batch_norm { epsilon: inf } }",
                  "model.layers[0].batch_norm.epsilon: expected > 0, found inf"},
        ErrorCase{"layers { name: 'relu_2' flatten {} } layers { relu {} } layers { relu {} }",
                  "model.layers[2].name: another layer is already called \"relu_2\""},
        ErrorCase{"layers { name: 'a' relu {} } layers { name: 'a' flatten {} }",
                  "model.layers[1].name: another layer is already called \"a\""},
        ErrorCase{"layers { name: 'a/b' relu {} }",
                  "model.layers[0].name: expected letters, digits, '.', '_' or '-', the first of "
                  "them a letter, a digit or '.', found \"a/b\""},
        ErrorCase{"layers { name: '_keelson' relu {} }",
                  "model.layers[0].name: expected letters, digits, '.', '_' or '-', the first of "
                  "them a letter, a digit or '.', found \"_keelson\""}));

}  // namespace
}  // namespace keelson
