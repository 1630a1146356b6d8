// Describes a variable and computes its initial values.
#ifndef KEELSON_CORE_TENSOR_VARIABLE_H_
#define KEELSON_CORE_TENSOR_VARIABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "core/tensor/shape.h"

namespace keelson {

// Distribution of initial values.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };
  Kind kind = Kind::kConstant;
  // kConstant: the value, unused. kUniform: low, high. kNormal: mean, standard deviation.
  // kTruncatedNormal: those of the normal distribution whose values are drawn again until they lie
  // within two standard deviations, as tf.random.truncated_normal does; so the standard deviation
  // of the values is 0.8796 of it.
  float a = 0;
  float b = 0;

  friend bool operator==(const Initializer&, const Initializer&) = default;
};

// A named float32 tensor on the parameter servers.
struct VariableSpec {
  std::string name;
  Shape shape;
  Initializer initializer;
  // Set, in [0, 1): the variable is not trained. Workers push samples for it, and a server updates
  // it by value = average_decay * value + (1 - average_decay) * sample.
  std::optional<float> average_decay = std::nullopt;

  bool trained() const { return !average_decay.has_value(); }
  int64_t bytes() const { return shape.num_elements() * static_cast<int64_t>(sizeof(float)); }
};

// Elements [begin, end) of a model's variables()[variable].
struct ElementRange {
  size_t variable = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Writes the initial values of elements [first, first + out.size()) of the variable. The value of
// an element depends on (seed, name, element) alone, so any sharding yields the same variable.
void FillInitialValues(const VariableSpec& spec, uint64_t seed, int64_t first,
                       absl::Span<float> out);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_VARIABLE_H_
