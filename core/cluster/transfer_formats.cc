#include "core/cluster/transfer_formats.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kDefaultMinElements = 1024;

absl::Status FieldError(int group, absl::string_view field, absl::string_view expected,
                        absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("transfer.groups[", group, "].", field,
                                                 ": expected ", expected, ", found ", found));
}

// As a text proto has it; a number when the format does not exist.
std::string Name(v1::WireFormat format) {
  return v1::WireFormat_IsValid(format) ? v1::WireFormat_Name(format)
                                        : absl::StrCat(static_cast<int>(format));
}

absl::Status ValidateGroup(int i, const v1::TransferConfig::Group& group) {
  if (group.variables().empty()) {
    return FieldError(i, "variables", "a pattern such as \"*\" or \"dense_1/*\"", "\"\"");
  }
  if (!v1::WireFormat_IsValid(group.push())) {
    return FieldError(i, "push", "FLOAT32, FLOAT16, BFLOAT16, INT8 or TOP_K", Name(group.push()));
  }
  if (!v1::WireFormat_IsValid(group.pull()) ||
      !IsElementwise(static_cast<WireFormat>(group.pull()))) {
    return FieldError(i, "pull", "FLOAT32, FLOAT16 or BFLOAT16", Name(group.pull()));
  }
  const float fraction = group.top_k_fraction();
  if (!(fraction >= 0 && fraction <= 1)) {
    return FieldError(i, "top_k_fraction", "a number in (0, 1]", absl::StrCat(fraction));
  }
  if (group.min_elements() < 0) {
    return FieldError(i, "min_elements", "at least 0", absl::StrCat(group.min_elements()));
  }
  return absl::OkStatus();
}

bool IsFloat32(const v1::TransferConfig::Group& group) {
  return group.push() == v1::FLOAT32 && group.pull() == v1::FLOAT32;
}

// Whether the group matches no table and variables, and none of them is trained.
bool MatchesAveragesAlone(const v1::TransferConfig::Group& group,
                          absl::Span<const VariableSpec> variables,
                          absl::Span<const TableSpec> tables) {
  for (const TableSpec& table : tables) {
    if (MatchesPattern(group.variables(), table.name)) return false;
  }
  bool matches = false;
  for (const VariableSpec& variable : variables) {
    if (!MatchesPattern(group.variables(), variable.name)) continue;
    if (variable.trained()) return false;
    matches = true;
  }
  return matches;
}

VariableFormats FormatsOf(const v1::TransferConfig::Group& group, const VariableSpec& variable) {
  VariableFormats formats;
  if (!variable.trained()) return formats;
  formats.push = static_cast<WireFormat>(group.push());
  formats.pull = static_cast<WireFormat>(group.pull());
  if (group.top_k_fraction() > 0) formats.top_k_fraction = group.top_k_fraction();
  const int64_t least = group.min_elements() > 0 ? group.min_elements() : kDefaultMinElements;
  if (!IsElementwise(formats.push) && variable.shape.num_elements() < least) {
    formats.push = WireFormat::kFloat32;
  }
  return formats;
}

// The position of the group that decides; groups_size(): none does.
int GroupOf(const v1::TransferConfig& config, absl::string_view name) {
  int i = 0;
  while (i < config.groups_size() && !MatchesPattern(config.groups(i).variables(), name)) ++i;
  return i;
}

absl::Status CheckTables(const v1::TransferConfig& config, absl::Span<const TableSpec> tables) {
  if (config.depth() == 2 && !tables.empty()) {
    return absl::InvalidArgumentError(
        "transfer.depth: expected 1 of a model with tables, whose rows a step needs as the step "
        "before has left them, found 2");
  }
  for (const TableSpec& table : tables) {
    const int i = GroupOf(config, table.name);
    if (i == config.groups_size() || config.groups(i).push() != v1::TOP_K) continue;
    return FieldError(
        i, "push",
        absl::StrCat("FLOAT32, FLOAT16, BFLOAT16 or INT8 for the table \"", table.name, "\""),
        "TOP_K");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TopKCount(float fraction, int64_t elements) {
  const double count = std::ceil(static_cast<double>(fraction) * static_cast<double>(elements));
  return std::clamp<int64_t>(static_cast<int64_t>(count), 1, elements);
}

absl::Status ValidateTransferConfig(const v1::TransferConfig& config) {
  for (int i = 0; i < config.groups_size(); ++i) {
    RETURN_IF_ERROR(ValidateGroup(i, config.groups(i)));
  }
  if (config.depth() < 0 || config.depth() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("transfer.depth: expected 1 or 2, found ", config.depth()));
  }
  return absl::OkStatus();
}

absl::Status CheckTransferGroups(const v1::TransferConfig& config,
                                 absl::Span<const VariableSpec> variables,
                                 absl::Span<const TableSpec> tables) {
  RETURN_IF_ERROR(CheckTables(config, tables));
  for (int i = 0; i < config.groups_size(); ++i) {
    const v1::TransferConfig::Group& group = config.groups(i);
    if (IsFloat32(group) || !MatchesAveragesAlone(group, variables, tables)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("transfer.groups[", i, "]: expected push and pull FLOAT32 for \"",
                     group.variables(), "\", which matches moving averages alone, found push ",
                     Name(group.push()), ", pull ", Name(group.pull())));
  }
  return absl::OkStatus();
}

std::vector<VariableFormats> ResolveTransferFormats(const v1::TransferConfig& config,
                                                    absl::Span<const VariableSpec> variables) {
  std::vector<VariableFormats> formats;
  for (const VariableSpec& variable : variables) {
    const int group = GroupOf(config, variable.name);
    formats.push_back(group == config.groups_size() ? VariableFormats{}
                                                    : FormatsOf(config.groups(group), variable));
  }
  return formats;
}

std::vector<VariableFormats> ResolveTableFormats(const v1::TransferConfig& config,
                                                 absl::Span<const TableSpec> tables) {
  std::vector<VariableFormats> formats;
  for (const TableSpec& table : tables) {
    VariableFormats& of_table = formats.emplace_back();
    const int group = GroupOf(config, table.name);
    if (group == config.groups_size()) continue;
    of_table.push = static_cast<WireFormat>(config.groups(group).push());
    of_table.pull = static_cast<WireFormat>(config.groups(group).pull());
  }
  return formats;
}

}  // namespace keelson
