#include "core/model/stage.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/spec/model_config_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr int64_t kRows = 64;

// What a pass took before it was planned: each stage's output, and two gradients of the largest.
int64_t UnplannedFloats(const StageGraph& graph) {
  int64_t sum = 0, largest = 0;
  for (const int64_t floats : graph.feature_floats) sum += floats;
  for (const Stage& stage : graph.stages) {
    sum += stage.output_floats;
    largest = std::max(largest, stage.output_floats);
  }
  return kRows * (sum + 2 * largest);
}

struct Planned {
  int64_t floats = 0;
  int64_t least = 0;
  int64_t unplanned = 0;
};

Planned PlanModel(const std::string& text, bool training = true) {
  const auto spec = InferModelSpec(ParseModel(text));
  EXPECT_TRUE(spec.ok()) << spec.status();
  const StageGraph graph = MakeStages(*spec);
  const PassMemory memory = PlanPass(graph, kRows, training);
  Planned planned;
  planned.floats = memory.floats;
  planned.least = LeastFloats(memory.lifetimes);
  planned.unplanned = UnplannedFloats(graph);
  return planned;
}

constexpr char kMlp[] = R"(
    input_shape: [28, 28, 1] layers { flatten {} }
    layers { dense { units: 128 } } layers { relu {} } layers { dense { units: 64 } }
    layers { relu {} } layers { dense { units: 10 } } loss { kind: SOFTMAX_CROSS_ENTROPY })";
constexpr char kCnn[] = R"(
    input_shape: [28, 28, 1] layers { conv2d { filters: 32 kernel_size: 5 } } layers { relu {} }
    layers { max_pool { size: 2 } } layers { conv2d { filters: 64 kernel_size: 5 } }
    layers { relu {} } layers { max_pool { size: 2 } } layers { flatten {} }
    layers { dense { units: 512 } } layers { relu {} } layers { dropout { rate: 0.4 } }
    layers { dense { units: 10 } } loss { kind: SOFTMAX_CROSS_ENTROPY })";

std::string Residual() {
  std::string text =
      "input_shape: [16, 16, 3] "
      "layers { name: 'in' conv2d { filters: 16 kernel_size: 3 padding: SAME } } ";
  std::string last = "in";
  for (int i = 0; i < 6; ++i) {
    const std::string n = absl::StrCat(i);
    absl::StrAppend(&text, "layers { name: 'a", n, "' inputs: '", last,
                    "' conv2d { filters: 16 kernel_size: 3 padding: SAME } } layers { relu {} } "
                    "layers { name: 'b",
                    n,
                    "' conv2d { filters: 16 kernel_size: 3 padding: SAME } } "
                    "layers { name: 'sum",
                    n, "' add {} inputs: 'b", n, "' inputs: '", last, "' } layers { name: 'out", n,
                    "' relu {} } ");
    last = "out" + n;
  }
  return text +
         "layers { flatten {} } layers { dense { units: 10 } } "
         "loss { kind: SOFTMAX_CROSS_ENTROPY }";
}

std::string Wide() {
  std::string text = "input_shape: 64 ";
  std::string inputs;
  for (int i = 0; i < 12; ++i) {
    absl::StrAppend(
        &text, "layers { name: 'a", i, "' inputs: 'features' dense { units: ", 16 + 24 * i,
        " } } layers { relu {} } layers { name: 'b", i, "' dense { units: ", 8 + 5 * i, " } } ");
    absl::StrAppend(&inputs, "inputs: 'b", i, "' ");
  }
  return absl::StrCat(text, "layers { concat {} ", inputs,
                      "} layers { dense { units: 10 } } loss { kind: SOFTMAX_CROSS_ENTROPY }");
}

std::string Towers() {
  std::string text = "input_shape: 200 ";
  for (const char* tower : {"user", "item"}) {
    absl::StrAppend(&text, "layers { name: '", tower,
                    "' inputs: 'features' slice { begin: ", tower[0] == 'u' ? 0 : 100,
                    " size: 100 } } layers { dense { units: 256 } } ",
                    "layers { relu {} } layers { dense { units: 128 } } layers { relu {} } ",
                    "layers { name: '", tower, "_vector' dense { units: 32 } } ");
  }
  return text +
         "layers { multiply {} inputs: 'user_vector' inputs: 'item_vector' } "
         "layers { dense { units: 1 } } loss { kind: SIGMOID_CROSS_ENTROPY }";
}

// A body with heads at several depths; one head's scores are taken by another layer, too.
std::string SeveralLosses() {
  std::string text = "input_shape: 300 ", losses;
  std::string last = "features";
  for (int i = 0; i < 5; ++i) {
    absl::StrAppend(&text, "layers { name: 'body", i, "' inputs: '", last,
                    "' dense { units: ", 256 - 40 * i, " } } layers { name: 'b", i, "' relu {} } ",
                    "layers { name: 'hidden", i, "' dense { units: 32 } } layers { tanh {} } ",
                    "layers { name: 'score", i, "' dense { units: 1 } } ");
    absl::StrAppend(&losses, "losses { kind: MEAN_SQUARED_ERROR scores: 'score", i, "' label: 'l",
                    i, "' } ");
    last = absl::StrCat("b", i);
  }
  return absl::StrCat(text, "layers { name: 'both' concat {} inputs: 'b4' inputs: 'score0' } ",
                      "layers { dense { units: 10 } } ", losses,
                      "losses { kind: SOFTMAX_CROSS_ENTROPY }");
}

TEST(PassMemoryTest, AChainTakesNoMoreThanWithoutAPlan) {
  for (const char* model : {kMlp, kCnn}) {
    const Planned planned = PlanModel(model);
    EXPECT_LE(planned.floats, planned.unplanned);
    EXPECT_LE(planned.floats, 1.1 * static_cast<double>(planned.least));
  }
}

TEST(PassMemoryTest, GraphsTakeLittleMoreThanTheLeast) {
  for (const std::string& model : {Residual(), Wide(), Towers(), SeveralLosses()}) {
    const Planned planned = PlanModel(model);
    EXPECT_LE(planned.floats, 1.1 * static_cast<double>(planned.least)) << planned.least;
  }
}

TEST(PassMemoryTest, EvaluationKeepsNoOutputLongerThanItIsRead) {
  for (const std::string& model : {std::string(kCnn), Residual(), Wide(), Towers()}) {
    const Planned training = PlanModel(model);
    const Planned evaluation = PlanModel(model, /*training=*/false);
    EXPECT_LT(evaluation.floats, training.floats);
    EXPECT_LE(evaluation.floats, 1.2 * static_cast<double>(evaluation.least));
  }
}

}  // namespace
}  // namespace keelson
