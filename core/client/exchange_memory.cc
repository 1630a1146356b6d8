#include "core/client/exchange_memory.h"

#include <utility>

namespace keelson {

ExchangeMemory::ExchangeMemory(absl::Span<const VariableSpec> variables, int depth)
    : values_(Allocate(variables)) {
  if (depth > 1) landing_ = Allocate(variables);
  for (int slot = 0; slot < depth; ++slot) gradients_.push_back(Allocate(variables));
}

ExchangeMemory::ExchangeMemory(ParameterMemory memory)
    : values_(std::move(memory.values)), gradients_{std::move(memory.gradients)} {}

std::vector<absl::Span<float>> ExchangeMemory::Allocate(absl::Span<const VariableSpec> variables) {
  std::vector<absl::Span<float>> arrays;
  for (const VariableSpec& variable : variables) {
    arrays.push_back(owned_.emplace_back(variable.shape).span());
  }
  return arrays;
}

}  // namespace keelson
