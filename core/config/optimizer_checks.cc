#include "core/config/optimizer_checks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"
#include "core/config/field_checks.h"
#include "core/optim/optimizer_groups.h"

namespace keelson {
namespace {

using Group = v1::OptimizerConfig::Group;

absl::Status CheckAdagrad(const std::string& path, const v1::OptimizerConfig::Adagrad& adagrad) {
  RETURN_IF_ERROR(NotNegative(path + ".initial_accumulator", adagrad.initial_accumulator()));
  return Positive(path + ".epsilon", adagrad.epsilon());
}

absl::Status CheckRmsProp(const std::string& path, const v1::OptimizerConfig::RmsProp& rmsprop) {
  RETURN_IF_ERROR(Fraction(path + ".decay", rmsprop.decay()));
  RETURN_IF_ERROR(Fraction(path + ".momentum", rmsprop.momentum()));
  return Positive(path + ".epsilon", rmsprop.epsilon());
}

template <typename AdamOrAdamW>
absl::Status CheckAdam(const std::string& path, const AdamOrAdamW& adam) {
  RETURN_IF_ERROR(Fraction(path + ".beta1", adam.beta1()));
  RETURN_IF_ERROR(Fraction(path + ".beta2", adam.beta2()));
  return Positive(path + ".epsilon", adam.epsilon());
}

absl::Status CheckAdamW(const std::string& path, const v1::OptimizerConfig::AdamW& adamw) {
  RETURN_IF_ERROR(CheckAdam(path, adamw));
  return NotNegative(path + ".weight_decay", adamw.weight_decay());
}

absl::Status CheckFtrl(const std::string& path, const v1::OptimizerConfig::Ftrl& ftrl) {
  RETURN_IF_ERROR(NotNegative(path + ".initial_accumulator", ftrl.initial_accumulator()));
  RETURN_IF_ERROR(NotNegative(path + ".l1", ftrl.l1()));
  RETURN_IF_ERROR(NotNegative(path + ".l2", ftrl.l2()));
  RETURN_IF_ERROR(NotNegative(path + ".l2_shrinkage", ftrl.l2_shrinkage()));
  return NotNegative(path + ".beta", ftrl.beta());
}

// The algorithm of an OptimizerConfig or of a group, if there is one.
template <typename Config>
absl::Status CheckKind(const std::string& path, const Config& config) {
  switch (config.kind_case()) {
    case Config::kSgd:
    case Config::KIND_NOT_SET:
      return absl::OkStatus();
    case Config::kMomentum:
      return Fraction(path + ".momentum.momentum", config.momentum().momentum());
    case Config::kAdagrad:
      return CheckAdagrad(path + ".adagrad", config.adagrad());
    case Config::kRmsprop:
      return CheckRmsProp(path + ".rmsprop", config.rmsprop());
    case Config::kAdam:
      return CheckAdam(path + ".adam", config.adam());
    case Config::kAdamw:
      return CheckAdamW(path + ".adamw", config.adamw());
    case Config::kFtrl:
      return CheckFtrl(path + ".ftrl", config.ftrl());
  }
  return absl::OkStatus();
}

bool HasSettings(const Group& group) {
  return group.kind_case() != Group::KIND_NOT_SET || group.rate_case() != Group::RATE_NOT_SET ||
         group.has_weight_decay() || group.has_clip_value() || group.has_l2();
}

bool IsFtrl(const v1::OptimizerConfig& optimizer, const Group& group) {
  return group.kind_case() == Group::KIND_NOT_SET ? optimizer.has_ftrl() : group.has_ftrl();
}

absl::Status CheckRate(const std::string& path, const Group& group) {
  switch (group.rate_case()) {
    case Group::kLearningRate:
      return Positive(path + ".learning_rate", group.learning_rate());
    case Group::kLearningRateFactor:
      return Positive(path + ".learning_rate_factor", group.learning_rate_factor());
    case Group::RATE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

// Checks a group by itself.
absl::Status CheckGroup(const std::string& path, const v1::OptimizerConfig& optimizer,
                        const Group& group) {
  if (group.variables().empty()) {
    return FieldError(path + ".variables", "a pattern such as \"*\" or \"dense_1/*\"", "\"\"");
  }
  if (group.frozen() && HasSettings(group)) {
    return FieldError(path + ".frozen", "no other setting of the group beside it", "some");
  }
  RETURN_IF_ERROR(CheckKind(path, group));
  RETURN_IF_ERROR(CheckRate(path, group));
  RETURN_IF_ERROR(NotNegative(path + ".weight_decay", group.weight_decay()));
  RETURN_IF_ERROR(NotNegative(path + ".clip_value", group.clip_value()));
  RETURN_IF_ERROR(NotNegative(path + ".l2", group.l2()));
  if (group.has_weight_decay() && IsFtrl(optimizer, group)) {
    return FieldError(path + ".weight_decay", "none with ftrl (its l2)", group.weight_decay());
  }
  return absl::OkStatus();
}

std::string Quoted(const std::string& pattern) { return absl::StrCat("\"", pattern, "\""); }

// Checks that the group decides for a variable.
absl::Status CheckMatches(const std::string& path, const v1::OptimizerConfig& optimizer,
                          const Group& group, absl::Span<const VariableSpec> variables) {
  bool matches = false, matches_trained = false;
  for (const VariableSpec& variable : variables) {
    if (!MatchesPattern(group.variables(), variable.name)) continue;
    matches = true;
    if (!variable.trained()) continue;
    matches_trained = true;
    if (OptimizerGroupOf(optimizer, variable.name) == &group) return absl::OkStatus();
  }
  const char* const expected = !matches ? "a pattern that matches a variable"
                               : !matches_trained
                                   ? "a pattern that matches more than moving averages"
                                   : "a pattern that matches a variable of no group before it";
  return FieldError(path + ".variables", expected, Quoted(group.variables()));
}

absl::Status CheckGroups(const v1::OptimizerConfig& optimizer,
                         absl::Span<const VariableSpec> variables) {
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    const std::string path = absl::StrCat("optimizer.groups[", i, "]");
    RETURN_IF_ERROR(CheckGroup(path, optimizer, optimizer.groups(i)));
    RETURN_IF_ERROR(CheckMatches(path, optimizer, optimizer.groups(i), variables));
  }
  const bool trains =
      std::any_of(variables.begin(), variables.end(), [&](const VariableSpec& variable) {
        return variable.trained() && !IsFrozen(optimizer, variable);
      });
  if (trains) return absl::OkStatus();
  return FieldError("optimizer.groups", "a variable that is not frozen", "none");
}

}  // namespace

absl::Status CheckOptimizer(const v1::OptimizerConfig& optimizer,
                            absl::Span<const VariableSpec> variables) {
  if (optimizer.kind_case() == v1::OptimizerConfig::KIND_NOT_SET) {
    return FieldError("optimizer", "one of sgd, momentum, adagrad, rmsprop, adam, adamw and ftrl",
                      "none");
  }
  RETURN_IF_ERROR(CheckKind("optimizer", optimizer));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_global_norm", optimizer.clip_global_norm()));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_value", optimizer.clip_value()));
  RETURN_IF_ERROR(NotNegative("optimizer.l2", optimizer.l2()));
  return CheckGroups(optimizer, variables);
}

bool UsesFtrl(const v1::OptimizerConfig& optimizer) {
  return optimizer.has_ftrl() || std::any_of(optimizer.groups().begin(), optimizer.groups().end(),
                                             [](const Group& group) { return group.has_ftrl(); });
}

}  // namespace keelson
