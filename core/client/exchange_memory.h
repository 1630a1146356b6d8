// The arrays that a client's exchange with the servers reads and writes.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_MEMORY_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_MEMORY_H_

#include <vector>

#include "absl/types/span.h"
#include "core/client/parameter_client.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace keelson {

// One array per variable and kind. Depth 1: values and gradients. Depth 2: two sets of gradients,
// one per step under way, and a second set of values, where answers land while the caller reads the
// first. Not thread-safe by itself; movable before use.
class ExchangeMemory {
 public:
  // Its own memory, zeros.
  ExchangeMemory(absl::Span<const VariableSpec> variables, int depth);
  // The caller's; depth 1.
  explicit ExchangeMemory(ParameterMemory memory);

  int depth() const { return static_cast<int>(gradients_.size()); }

  // What the caller sees.
  absl::Span<const absl::Span<float>> values() const { return values_; }
  // Where answers go; the same as values() at depth 1.
  absl::Span<const absl::Span<float>> landing() const {
    return landing_.empty() ? values_ : landing_;
  }
  // `slot` < depth().
  absl::Span<const absl::Span<float>> gradients(int slot) const {
    return gradients_[static_cast<size_t>(slot)];
  }

  // Depth 2: what has landed becomes what the caller sees.
  void SwapLanding() { values_.swap(landing_); }

 private:
  std::vector<absl::Span<float>> Allocate(absl::Span<const VariableSpec> variables);

  std::vector<Tensor> owned_;
  std::vector<absl::Span<float>> values_;
  std::vector<absl::Span<float>> landing_;  // depth 2
  std::vector<std::vector<absl::Span<float>>> gradients_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_MEMORY_H_
