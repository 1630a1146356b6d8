#include "worker/script/script_values.h"

#include <algorithm>
#include <cstddef>

namespace keelson {

ScriptValues::ScriptValues(const ParameterMemory& script,
                           const std::vector<VariableSpec>& variables, bool holds)
    : seen_(script.values), lent_(script) {
  if (!holds) return;
  for (const VariableSpec& variable : variables) own_.emplace_back(variable.shape);
  for (size_t v = 0; v < own_.size(); ++v) lent_.values[v] = own_[v].span();
}

void ScriptValues::Publish() {
  for (size_t v = 0; v < own_.size(); ++v) Publish(v);
}

void ScriptValues::Publish(size_t variable) {
  if (!holds()) return;
  const absl::Span<const float> values = own_[variable].span();
  std::copy(values.begin(), values.end(), seen_[variable].begin());
}

}  // namespace keelson
