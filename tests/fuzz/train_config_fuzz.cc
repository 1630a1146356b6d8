// libFuzzer program for a configuration's text: parsed, completed, checked, and what follows for
// the model. The kind of input is of no meaning.

#include "core/config/train_config.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/record_schema.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

void CheckModel(const ModelSpec& model) {
  Check(!model.layers.empty() && !(model.variables.empty() && model.tables.empty()),
        "a model has layers to train");
  for (const LayerSpec& layer : model.layers) {
    for (const int64_t dim : layer.output.dims()) Check(dim > 0, "extents are positive");
    for (const size_t variable : layer.variables()) {
      Check(variable < model.variables.size(), "a layer's variables exist");
    }
  }
  for (const FeatureSpec& feature : model.records.features) {
    const bool ids = feature.kind != FeatureKind::kNumbers;
    Check(ids || feature.num_ids == 0, "numbers are no ids");
    Check(!ids || feature.num_ids > 0 || !model.tables.empty(), "embeddings have rows for ids");
  }
  for (const VariableSpec& variable : model.variables) {
    Check(variable.shape.num_elements() > 0, "variables have elements");
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  AddSeeds('t',
           {R"(model { input_shape: [6, 6, 1] layers { conv2d { filters: 2 kernel_size: 3 } }
  layers { batch_norm {} } layers { max_pool { size: 2 padding: SAME } } layers { flatten {} }
  layers { dense { units: 4 } } layers { dropout { rate: 0.5 } } layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY } }
optimizer { adam {} clip_global_norm: 1 } learning_rate { base: 0.1 cosine { decay_steps: 9 } }
train { batch_size: 8 max_steps: 10 } evaluation { exporters { best { metric: "loss" } } })",
            R"(model { input_shape: 3 layers { dense { units: 1 } }
  loss { kind: MEAN_SQUARED_ERROR } }
optimizer { sgd {} } learning_rate { base: 0.1 } train { batch_size: 1 epochs: 1 }
transfer { depth: 2 groups { variables: "*/kernel" push: TOP_K pull: FLOAT16 } }
consistency { mode { synchronous { replicas_to_aggregate: 2 total_replicas: 3 } } })",
            R"(model { features { name: "u" id {} } features { name: "b" bag { weighted: true } }
  layers { name: "e" inputs: "u" embedding { rows: 5 dim: 2 } }
  layers { inputs: "b" embedding_bag { rows: 5 dim: 2 combiner: SQRTN } variables_of: "e" }
  layers { add {} inputs: "e" inputs: "embedding_bag_1" } layers { dense { units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" } } data { generated_clicks {} }
optimizer { adagrad {} } learning_rate { base: 0.1 } train { batch_size: 2 epochs: 1 })"},
           &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  absl::StatusOr<v1::TrainConfig> config = ParseTrainConfig(input, "input");
  if (!config.ok()) return;
  const absl::StatusOr<ModelSpec> model = InferModelSpec(config->model());
  if (model.ok()) CheckModel(*model);
  if (!FinalizeTrainConfig(&*config).ok()) return;
  Check(model.ok(), "a configuration that passes has a model");
  Check(FinalizeTrainConfig(&*config).ok(), "what was completed passes again");
}

}  // namespace keelson
