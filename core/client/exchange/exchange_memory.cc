#include "core/client/exchange/exchange_memory.h"

#include <algorithm>
#include <utility>

namespace keelson {
namespace {

template <typename T>
void CopyRange(absl::Span<const absl::Span<T>> from, absl::Span<const absl::Span<T>> to, size_t v,
               size_t first, size_t count) {
  std::copy_n(from[v].data() + first, count, to[v].data() + first);
}

}  // namespace

ExchangeMemory::ExchangeMemory(absl::Span<const VariableSpec> variables, size_t depth)
    : depth_(depth), owned_(std::make_shared<std::vector<Tensor>>()) {
  for (size_t set = 0; set < depth; ++set) {
    values_.push_back(Allocate(variables));
    gradients_.push_back(Allocate(variables));
  }
}

ExchangeMemory::ExchangeMemory(ParameterMemory memory, size_t depth) : depth_(depth) {
  if (memory.wire.has_value()) {
    wire_ = *std::move(memory.wire);
    return;
  }
  values_.push_back(std::move(memory.values));
  gradients_.push_back(std::move(memory.gradients));
}

std::vector<absl::Span<float>> ExchangeMemory::Allocate(absl::Span<const VariableSpec> variables) {
  std::vector<absl::Span<float>> arrays;
  for (const VariableSpec& variable : variables) {
    arrays.push_back(owned_->emplace_back(variable.shape).span());
  }
  return arrays;
}

size_t ExchangeMemory::num_variables() const {
  return values_.empty() ? wire_.values[0].size() : values_[0].size();
}

ParameterArrays ExchangeMemory::ValuesOf(size_t set) const {
  if (!values_.empty()) return {values_[set], {}};
  return {{}, wire_.values[set]};
}

ParameterArrays ExchangeMemory::gradients(size_t slot) const {
  if (!gradients_.empty()) return {gradients_[slot], {}};
  return {{}, wire_.gradients[slot]};
}

void ExchangeMemory::CopyToLanding(const PlannedBlock& block) {
  const size_t v = block.variable;
  const ParameterArrays from = values(), to = landing();
  if (!from.elements.empty()) {
    CopyRange(from.elements, to.elements, v, block.first_element, block.num_elements);
  } else {
    CopyRange(from.bytes, to.bytes, v, PullOffset(block), PullBytes(block));
  }
}

}  // namespace keelson
