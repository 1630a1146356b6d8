#include "core/config/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>

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
    case Config::Group::KIND_NOT_SET:
      break;
  }
  return FieldError(path,
                    "one of constant, uniform, normal, truncated_normal, glorot_uniform, "
                    "glorot_normal, he_uniform and he_normal",
                    "none");
}

// The initializer that the group, whose kind is set, gives a variable with these fans. NOT_FOUND:
// it needs fans, and there are none.
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

// The position of the first group whose pattern matches the name; groups_size(): there is none.
int GroupOf(const Config& config, absl::string_view variable) {
  const auto group = std::find_if(config.groups().begin(), config.groups().end(),
                                  [&](const Config::Group& candidate) {
                                    return MatchesPattern(candidate.variables(), variable);
                                  });
  return static_cast<int>(std::distance(config.groups().begin(), group));
}

}  // namespace

absl::StatusOr<std::vector<VariableSpec>> WithInitialValues(const Config& config,
                                                            std::vector<VariableSpec> variables) {
  for (int i = 0; i < config.groups_size(); ++i) {
    const std::string path = absl::StrCat("initial_values.groups[", i, "]");
    const Config::Group& group = config.groups(i);
    RETURN_IF_ERROR(CheckGroup(path, group));
    bool matches = false, decides = false;
    for (VariableSpec& variable : variables) {
      matches = matches || MatchesPattern(group.variables(), variable.name);
      if (GroupOf(config, variable.name) != i) continue;
      decides = true;
      RETURN_IF_ERROR(SetInitializer(path, group, &variable));
    }
    if (decides) continue;
    return FieldError(path + ".variables",
                      matches ? "a pattern that matches a variable of no group before it"
                              : "a pattern that matches a variable",
                      absl::StrCat("\"", group.variables(), "\""));
  }
  return variables;
}

}  // namespace keelson
