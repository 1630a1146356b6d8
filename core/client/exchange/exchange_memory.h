// The arrays that a client's exchange with the servers reads and writes.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/client/plan/transfer_plan.h"
#include "core/client/services/parameter_client.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace keelson {

// An array per variable: of elements or, when that is empty, of bytes in wire format.
struct ParameterArrays {
  absl::Span<const absl::Span<float>> elements;
  absl::Span<const absl::Span<uint8_t>> bytes;
};

// Sets of values and of gradients. Depth 1: one of each. Depth 2: two sets of gradients, one per
// step under way, and two sets of values: answers land in one while the caller reads the other. Not
// thread-safe by itself; movable before use.
class ExchangeMemory {
 public:
  // Allocates arrays of zeros.
  ExchangeMemory(absl::Span<const VariableSpec> variables, size_t depth);
  // Uses the caller's memory. Wire memory has `depth` sets; with memory of elements the depth is 1.
  ExchangeMemory(ParameterMemory memory, size_t depth);

  size_t depth() const { return depth_; }
  size_t num_variables() const;

  // The set of values that the caller reads.
  size_t value_set() const { return value_set_; }
  ParameterArrays values() const { return ValuesOf(value_set_); }
  // The set into which answers are written; the same as values() at depth 1.
  ParameterArrays landing() const { return ValuesOf(landing_set()); }
  // `slot` < depth().
  ParameterArrays gradients(size_t slot) const;
  // Keeps the gradients alive without this object; null: they are the caller's memory.
  std::shared_ptr<const void> owner() const { return owned_; }

  // Depth 2: makes the landed values the caller's.
  void SwapLanding() { value_set_ = landing_set(); }
  // Depth 2: copies a block from values() to landing().
  void CopyToLanding(const PlannedBlock& block);

 private:
  std::vector<absl::Span<float>> Allocate(absl::Span<const VariableSpec> variables);
  size_t landing_set() const { return depth_ - 1 - value_set_; }
  ParameterArrays ValuesOf(size_t set) const;

  size_t depth_;
  std::shared_ptr<std::vector<Tensor>> owned_;
  // By set; empty with wire memory.
  std::vector<std::vector<absl::Span<float>>> values_;
  std::vector<std::vector<absl::Span<float>>> gradients_;
  WireMemory wire_;
  size_t value_set_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_MEMORY_H_
