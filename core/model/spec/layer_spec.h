// A layer of a model: its inputs, shapes, variables and numbers.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYER_SPEC_H_
#define KEELSON_CORE_MODEL_SPEC_LAYER_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/spec/layer_graph.h"
#include "core/model/spec/layer_kind.h"
#include "core/tensor/shape.h"

namespace keelson {

// What the sum of the weighted rows of a bag is divided by: 1, the sum of the weights, or the root
// of the sum of their squares.
enum class Combiner { kSum, kMean, kSqrtN };

struct LayerSpec {
  LayerKind kind = LayerKind::kFlatten;
  // Default: the kind and its number from 1 among the layers of this kind, "dense_1".
  std::string name;
  // What the layer takes: one value, or several (LayerRules::inputs). Each is a feature or an
  // earlier layer's output.
  std::vector<ValueId> inputs;
  // The shape of one example, without the batch, of the first input, of each, and of the output.
  Shape input;
  std::vector<Shape> input_shapes;
  Shape output;
  // Positions in ModelSpec::variables.
  std::optional<size_t> down_kernel;  // of cross with a rank
  std::optional<size_t> kernel;
  std::optional<size_t> embeddings;  // of embedding and embedding_bag
  std::optional<size_t> bias;
  std::optional<size_t> gamma;
  std::optional<size_t> beta;
  std::optional<size_t> moving_mean;
  std::optional<size_t> moving_variance;
  // For convolutions and pools: the window's extent, its stride, and the padding before the first
  // row and column. SAME is TensorFlow's: the output has ceil(input / stride) rows, and an odd
  // padding has its extra row at the end.
  int64_t window = 0;
  int64_t stride = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  // Of embedding and embedding_bag over a table: its position in ModelSpec::tables.
  std::optional<size_t> table;
  float dropout_rate = 0;
  float epsilon = 0;  // of batch_norm, layer_norm and cosine
  float scale_factor = 1;
  int64_t slice_begin = 0;  // of the last axis
  int64_t rank = 0;         // of cross; 0: its kernel is square
  Combiner combiner = Combiner::kSum;
  bool diagonal = false;     // of dot_interaction: pairs of a vector and itself too
  std::vector<size_t> axes;  // of transpose: of the output's axes which of the input's they are

  // Positions of all the variables that the layer has, ascending.
  std::vector<size_t> variables() const;
  // Whether it has variables or rows of a table.
  bool has_parameters() const { return table.has_value() || !variables().empty(); }
  // By which layers that share variables are known: those of one kernel, or of one matrix of
  // embeddings, share all. Nothing where the layer can share none.
  std::optional<size_t> shared_variable() const { return kernel ? kernel : embeddings; }
  // Of the forward pass of one example in training: additions, multiplications and what else is
  // done to an element, each once; to copy an element is none. Of a bag as if it had one id.
  int64_t operations() const;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYER_SPEC_H_
