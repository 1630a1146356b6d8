// The stages of a model's pass, and the memory that their values need.
//
// A stage is a layer, or one with the activation that follows it. Its moments: features are loaded
// at 0, stage i runs forward at i + 1, the losses are computed at S + 1 (of S stages), stage i runs
// backward at 2 S + 1 - i.
#ifndef KEELSON_CORE_MODEL_STAGE_H_
#define KEELSON_CORE_MODEL_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/geometry.h"
#include "core/model/memory_plan.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// Values are those of a graph of stages here: the features, then the outputs of the stages.
struct Stage {
  size_t layer = 0;  // in ModelSpec::layers
  std::optional<ActivationKind> activation;
  std::vector<ValueId> inputs;
  int64_t output_floats = 0;  // of one example
  // Of one example, for each array of Pass::kept.
  std::vector<int64_t> kept_floats;
  // Whether its backward pass reads them.
  bool reads_inputs = true;
  bool reads_output = true;
  // Which inputs get a gradient: those that depend on variables.
  std::vector<bool> input_gradients;
  // Whether there is anything to compute in its backward pass.
  bool backward = false;
};

struct LossStage {
  // What it takes: outputs of stages that run backward.
  std::vector<ValueId> inputs;
  // It has a score for each pair of two examples.
  bool scores_pairs = false;
};

struct StageGraph {
  // Of one example, of each feature; 0 of ids, which are not among the values' memory (IdInputs).
  std::vector<int64_t> feature_floats;
  // In the order of the forward pass. Flatten and reshape are no stages: their output is their
  // input.
  std::vector<Stage> stages;
  std::vector<LossStage> losses;

  GraphValues values() const { return GraphValues(feature_floats.size()); }
};

StageGraph MakeStages(const ModelSpec& spec);

// A part of the block of memory that a pass uses.
struct MemoryPart {
  int64_t begin = 0;
  int64_t floats = 0;
};

// The memory of a pass.
struct PassMemory {
  // Where the gradient of an input, of a stage or of a loss, goes to.
  struct Gradient {
    size_t part = 0;
    // The value's gradient is there already: this one is added to it.
    std::optional<size_t> sum;
  };

  // Of a loss that scores pairs of examples: the scores, and in training their gradient.
  struct PairScores {
    size_t scores = 0;
    size_t gradient = 0;
  };

  int64_t floats = 0;  // of the block
  std::vector<MemoryPart> parts;
  // Positions in `parts`: of each value, of what each stage keeps, and of what each loss scores;
  std::vector<size_t> values;
  std::vector<std::vector<size_t>> kept;
  std::vector<std::optional<PairScores>> pair_scores;
  // in training also of the gradients of each loss's inputs, of the output of each stage that runs
  // backward, and of each of its inputs that gets one.
  std::vector<std::vector<Gradient>> loss_gradients;
  std::vector<size_t> output_gradients;
  std::vector<std::vector<std::optional<Gradient>>> input_gradients;
  // When each part is in use.
  std::vector<Lifetime> lifetimes;
};

// For `rows` examples.
PassMemory PlanPass(const StageGraph& graph, int64_t rows, bool training);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_STAGE_H_
