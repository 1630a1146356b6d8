// The arrays that a client's exchange with the servers reads and writes.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/client/plan/transfer_plan.h"
#include "core/client/services/parameter_client.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace keelson {

// An array per variable of elements or, when that is empty, of bytes as they travel.
struct ParameterArrays {
  absl::Span<const absl::Span<float>> elements;
  absl::Span<const absl::Span<uint8_t>> bytes;
};

// Sets of values and of gradients. Depth 1: one of each. Depth 2: two sets of gradients, one per
// step under way, and two sets of values: answers land in one while the caller reads the other. Not
// thread-safe by itself; movable before use.
class ExchangeMemory {
 public:
  // Its own memory, zeros.
  ExchangeMemory(absl::Span<const VariableSpec> variables, int depth);
  // The caller's; its wire memory has `depth` sets, else the depth is 1.
  ExchangeMemory(ParameterMemory memory, int depth);

  int depth() const { return depth_; }
  int num_variables() const;

  // What the caller sees.
  int value_set() const { return value_set_; }
  ParameterArrays values() const { return ValuesOf(value_set_); }
  // Where answers go; the same as values() at depth 1.
  ParameterArrays landing() const { return ValuesOf(landing_set()); }
  // `slot` < depth().
  ParameterArrays gradients(int slot) const;

  // Depth 2: what has landed becomes what the caller sees.
  void SwapLanding() { value_set_ = landing_set(); }
  // Depth 2: copies a block's values to where answers go.
  void CopyToLanding(const PlannedBlock& block);

 private:
  std::vector<absl::Span<float>> Allocate(absl::Span<const VariableSpec> variables);
  int landing_set() const { return depth_ - 1 - value_set_; }
  ParameterArrays ValuesOf(int set) const;

  int depth_;
  std::vector<Tensor> owned_;
  // By set; empty with a wire memory.
  std::vector<std::vector<absl::Span<float>>> values_;
  std::vector<std::vector<absl::Span<float>>> gradients_;
  WireMemory wire_;
  int value_set_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_
