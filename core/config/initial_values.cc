#include "core/config/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"
#include "core/config/field_checks.h"
#include "core/tensor/fans.h"

namespace keelson {
namespace {

using Config = v1::InitialValuesConfig;

absl::Status CheckFinite(const std::string& field, float value) {
  return std::isfinite(value) ? absl::OkStatus() : FieldError(field, "a finite number", value);
}

absl::Status CheckUniform(const std::string& path, const Config::Uniform& uniform) {
  RETURN_IF_ERROR(CheckFinite(path + ".low", uniform.low()));
  RETURN_IF_ERROR(CheckFinite(path + ".high", uniform.high()));
  if (!std::isfinite(uniform.high() - uniform.low())) {
    return FieldError(path, "a finite difference of high and low", "an infinite one");
  }
  if (uniform.low() < uniform.high()) return absl::OkStatus();
  return FieldError(path + ".high", absl::StrCat("> ", uniform.low(), " (low)"), uniform.high());
}

absl::Status CheckNormal(const std::string& path, const Config::Normal& normal) {
  RETURN_IF_ERROR(CheckFinite(path + ".mean", normal.mean()));
  return Positive(path + ".stddev", normal.stddev());
}

absl::Status CheckFromFile(const std::string& path, const Config::Group& group) {
  const Config::FromFile& from = group.from();
  if (from.path().empty()) {
    return FieldError(path + ".path", "a snapshot or FILE.safetensors", "\"\"");
  }
  if (!Config::FromFile::Missing_IsValid(from.missing())) {
    return FieldError(path + ".missing", "ERROR or INITIALIZE", from.missing());
  }
  const auto stars = std::count(group.variables().begin(), group.variables().end(), '*');
  if (std::count(from.name().begin(), from.name().end(), '*') <= stars) return absl::OkStatus();
  return FieldError(path + ".name",
                    absl::StrCat("at most ", stars, " \"*\" as in \"", group.variables(), "\""),
                    absl::StrCat("\"", from.name(), "\""));
}

// Checks a group by itself.
absl::Status CheckGroup(const std::string& path, const Config::Group& group) {
  if (group.variables().empty()) {
    return FieldError(path + ".variables", "a pattern such as \"*\" or \"dense_1/*\"", "\"\"");
  }
  switch (group.kind_case()) {
    case Config::Group::kConstant:
      return CheckFinite(path + ".constant.value", group.constant().value());
    case Config::Group::kUniform:
      return CheckUniform(path + ".uniform", group.uniform());
    case Config::Group::kNormal:
      return CheckNormal(path + ".normal", group.normal());
    case Config::Group::kTruncatedNormal:
      return CheckNormal(path + ".truncated_normal", group.truncated_normal());
    case Config::Group::kGlorotUniform:
    case Config::Group::kGlorotNormal:
    case Config::Group::kHeUniform:
    case Config::Group::kHeNormal:
      return absl::OkStatus();
    case Config::Group::kFrom:
      return CheckFromFile(path + ".from", group);
    case Config::Group::KIND_NOT_SET:
      break;
  }
  return FieldError(path,
                    "one of constant, uniform, normal, truncated_normal, glorot_uniform, "
                    "glorot_normal, he_uniform, he_normal and from",
                    "none");
}

// The initializer that the group, whose kind is a distribution, gives a variable with these fans.
// NOT_FOUND: it needs fans, and there are none.
absl::StatusOr<Initializer> InitializerOf(const Config::Group& group,
                                          const std::optional<Fans>& fans) {
  using Kind = Initializer::Kind;
  switch (group.kind_case()) {
    case Config::Group::kUniform:
      return Initializer{Kind::kUniform, group.uniform().low(), group.uniform().high()};
    case Config::Group::kNormal:
      return Initializer{Kind::kNormal, group.normal().mean(), group.normal().stddev()};
    case Config::Group::kTruncatedNormal:
      return Initializer{Kind::kTruncatedNormal, group.truncated_normal().mean(),
                         group.truncated_normal().stddev()};
    case Config::Group::kConstant:
    case Config::Group::KIND_NOT_SET:
      return Initializer{Kind::kConstant, group.constant().value(), 0};
    default:
      break;
  }
  if (!fans.has_value()) return absl::NotFoundError("fans");
  switch (group.kind_case()) {
    case Config::Group::kGlorotUniform:
      return GlorotUniform(*fans);
    case Config::Group::kGlorotNormal:
      return GlorotNormal(*fans);
    case Config::Group::kHeUniform:
      return HeUniform(*fans);
    default:
      return HeNormal(*fans);
  }
}

absl::Status SetInitializer(const std::string& path, const Config::Group& group,
                            VariableSpec* variable) {
  const absl::StatusOr<Initializer> initializer = InitializerOf(group, FansOf(variable->shape));
  if (!initializer.ok()) {
    return FieldError(path + ".variables",
                      "kernels, which have inputs and outputs, for glorot and he",
                      absl::StrCat(variable->name, " ", variable->shape.ToString()));
  }
  variable->initializer = *initializer;
  return absl::OkStatus();
}

// The positions of the groups that decide for a variable, in order: those of files that need not
// have it, and the first other one, if any.
std::vector<int> GroupsOf(const Config& config, absl::string_view variable) {
  std::vector<int> groups;
  for (int i = 0; i < config.groups_size(); ++i) {
    const Config::Group& group = config.groups(i);
    if (!MatchesPattern(group.variables(), variable)) continue;
    groups.push_back(i);
    const bool goes_on = group.has_from() && group.from().missing() == Config::FromFile::INITIALIZE;
    if (!goes_on) break;
  }
  return groups;
}

std::string GroupPath(int group) { return absl::StrCat("initial_values.groups[", group, "]"); }

// "glorot_uniform"
std::string KindName(const Config::Group& group) {
  return Config::Group::descriptor()->FindFieldByNumber(group.kind_case())->name();
}

absl::Status SetTableInitializer(int group, const Config& config, TableSpec* table) {
  const absl::StatusOr<Initializer> initializer =
      config.groups(group).has_from() ? absl::NotFoundError("from")
                                      : InitializerOf(config.groups(group), std::nullopt);
  if (!initializer.ok()) {
    return FieldError(GroupPath(group),
                      absl::StrCat("constant, uniform, normal or truncated_normal for the table \"",
                                   table->name, "\""),
                      KindName(config.groups(group)));
  }
  table->initializer = *initializer;
  return absl::OkStatus();
}

// What a model starts from.
struct Starts {
  std::vector<VariableSpec> variables;
  std::vector<TableSpec> tables;
};

absl::Status DecidesForNone(int group, const Config& config, const Starts& starts) {
  const std::string& pattern = config.groups(group).variables();
  const auto matches = [&](const auto& spec) { return MatchesPattern(pattern, spec.name); };
  const bool decided = std::any_of(starts.variables.begin(), starts.variables.end(), matches) ||
                       std::any_of(starts.tables.begin(), starts.tables.end(), matches);
  return FieldError(GroupPath(group) + ".variables",
                    decided ? "a pattern that matches a variable of no group before it"
                            : "a pattern that matches a variable",
                    absl::StrCat("\"", pattern, "\""));
}

absl::StatusOr<Starts> StartsOf(const Config& config, Starts starts) {
  for (int i = 0; i < config.groups_size(); ++i) {
    RETURN_IF_ERROR(CheckGroup(GroupPath(i), config.groups(i)));
  }
  std::vector<bool> decides(config.groups_size());
  for (VariableSpec& variable : starts.variables) {
    for (const int i : GroupsOf(config, variable.name)) {
      decides[i] = true;
      if (config.groups(i).has_from()) continue;
      RETURN_IF_ERROR(SetInitializer(GroupPath(i), config.groups(i), &variable));
    }
  }
  for (TableSpec& table : starts.tables) {
    for (const int i : GroupsOf(config, table.name)) {
      decides[i] = true;
      RETURN_IF_ERROR(SetTableInitializer(i, config, &table));
    }
  }
  for (int i = 0; i < config.groups_size(); ++i) {
    if (!decides[i]) return DecidesForNone(i, config, starts);
  }
  return starts;
}

}  // namespace

absl::StatusOr<std::vector<VariableSpec>> WithInitialValues(const Config& config,
                                                            std::vector<VariableSpec> variables,
                                                            std::vector<TableSpec> tables) {
  ASSIGN_OR_RETURN(Starts starts, StartsOf(config, {std::move(variables), std::move(tables)}));
  return std::move(starts.variables);
}

absl::StatusOr<std::vector<TableSpec>> TablesWithInitialValues(const Config& config,
                                                               std::vector<VariableSpec> variables,
                                                               std::vector<TableSpec> tables) {
  ASSIGN_OR_RETURN(Starts starts, StartsOf(config, {std::move(variables), std::move(tables)}));
  return std::move(starts.tables);
}

std::vector<StoredStart> StoredStartsOf(const Config& config,
                                        const std::vector<VariableSpec>& variables) {
  std::vector<StoredStart> starts;
  for (size_t v = 0; v < variables.size(); ++v) {
    StoredStart start;
    start.variable = v;
    for (const int i : GroupsOf(config, variables[v].name)) {
      const Config::Group& group = config.groups(i);
      start.required = group.has_from() && group.from().missing() != Config::FromFile::INITIALIZE;
      if (!group.has_from()) continue;
      const std::string& name = group.from().name();
      start.origins.push_back(
          {static_cast<size_t>(i), group.from().path(),
           name.empty() ? variables[v].name
                        : MapName(group.variables(), name, variables[v].name).value_or("")});
    }
    if (!start.origins.empty()) starts.push_back(std::move(start));
  }
  return starts;
}

std::string ProposedValuesPath(absl::string_view model_dir) {
  return absl::StrCat(model_dir, "/script/initial.safetensors");
}

bool HasProposedValues(const Config& config) {
  return std::any_of(
      config.groups().begin(), config.groups().end(),
      [](const Config::Group& group) { return group.from().path() == kProposedValues; });
}

Config WithProposedValues(Config config, absl::string_view model_dir) {
  for (Config::Group& group : *config.mutable_groups()) {
    if (group.from().path() != kProposedValues) continue;
    group.mutable_from()->set_path(ProposedValuesPath(model_dir));
  }
  return config;
}

std::string FromPath(size_t group) {
  return absl::StrCat(GroupPath(static_cast<int>(group)), ".from");
}

}  // namespace keelson
