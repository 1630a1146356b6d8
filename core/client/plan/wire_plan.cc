#include "core/client/plan/wire_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/client/plan/transfer_plan.h"

namespace keelson {
namespace {

std::vector<VariableWire> JoinBlocks(absl::Span<const PlannedBlock> blocks, size_t num_variables) {
  std::vector<VariableWire> wire(num_variables);
  for (const PlannedBlock& block : blocks) {
    VariableWire& variable = wire[block.variable];
    variable.values = block.pull;
    WireLayout& layout = variable.gradient;
    layout.format = block.push;
    layout.blocks.push_back(
        {block.first_element, block.num_elements, block.push_offset, block.top_k_count});
    layout.num_elements += block.num_elements;
    layout.bytes = block.push_offset + (PushBytes(block) + 3) / 4 * 4;
  }
  return wire;
}

}  // namespace

absl::StatusOr<std::vector<size_t>> MatchVariables(absl::Span<const VariableSpec> variables,
                                                   const Placement& placement) {
  std::vector<size_t> positions;
  for (const VariableSpec& placed : placement.variables()) {
    const auto found =
        std::find_if(variables.begin(), variables.end(), [&](const VariableSpec& ours) {
          return ours.name == placed.name && ours.shape == placed.shape;
        });
    if (found == variables.end()) {
      return absl::InvalidArgumentError(absl::StrCat("placement: the model has no variable ",
                                                     placed.name, placed.shape.ToString()));
    }
    positions.push_back(found - variables.begin());
  }
  if (positions.size() != variables.size()) {
    return absl::InvalidArgumentError(absl::StrCat("placement: expected ", variables.size(),
                                                   " variables, found ", positions.size()));
  }
  return positions;
}

absl::StatusOr<std::vector<VariableWire>> WireOf(const Placement& placement,
                                                 absl::Span<const VariableSpec> variables,
                                                 absl::Span<const VariableFormats> formats) {
  ASSIGN_OR_RETURN(const std::vector<size_t> positions, MatchVariables(variables, placement));
  std::vector<VariableFormats> all(formats.begin(), formats.end());
  if (all.empty()) all.resize(variables.size());
  if (all.size() != variables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("formats: expected ", variables.size(), ", found ", all.size()));
  }
  return JoinBlocks(PlanBlocks(placement, positions, all), variables.size());
}

}  // namespace keelson
