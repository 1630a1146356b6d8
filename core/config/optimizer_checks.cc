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

absl::Status CheckRowWiseAdagrad(const std::string& path,
                                 const v1::OptimizerConfig::RowWiseAdagrad& adagrad) {
  RETURN_IF_ERROR(NotNegative(path + ".initial_accumulator", adagrad.initial_accumulator()));
  return Positive(path + ".epsilon", adagrad.epsilon());
}

template <typename AdamOrAdamW>
absl::Status CheckAdam(const std::string& path, const AdamOrAdamW& adam) {
  RETURN_IF_ERROR(Fraction(path + ".beta1", adam.beta1()));
  RETURN_IF_ERROR(Fraction(path + ".beta2", adam.beta2()));
  if (adam.exact() && !(double{adam.beta1()} * adam.beta1() < adam.beta2())) {
    return FieldError(path + ".beta1", "below the square root of beta2 with exact", adam.beta1());
  }
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
    case Config::kRowWiseAdagrad:
      return CheckRowWiseAdagrad(path + ".row_wise_adagrad", config.row_wise_adagrad());
  }
  return absl::OkStatus();
}

bool HasSettings(const Group& group) {
  return group.kind_case() != Group::KIND_NOT_SET || group.rate_case() != Group::RATE_NOT_SET ||
         group.has_weight_decay() || group.exact_weight_decay() || group.has_clip_value() ||
         group.has_l2();
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

// Checks that there is a weight decay where the group makes it exact.
absl::Status CheckExactDecay(const std::string& path, const v1::OptimizerConfig& optimizer,
                             const Group& group) {
  if (!group.exact_weight_decay()) return absl::OkStatus();
  const bool own_kind = group.kind_case() != Group::KIND_NOT_SET;
  const float of_kind = own_kind ? group.adamw().weight_decay() : optimizer.adamw().weight_decay();
  const float decay = group.has_weight_decay() ? group.weight_decay() : of_kind;
  if (decay > 0) return absl::OkStatus();
  return FieldError(path + ".weight_decay", "> 0 with exact_weight_decay", decay);
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
  return CheckExactDecay(path, optimizer, group);
}

std::string Quoted(const std::string& pattern) { return absl::StrCat("\"", pattern, "\""); }

// Whether the group decides for the variable or table.
bool Decides(const v1::OptimizerConfig& optimizer, const Group& group, const std::string& name) {
  return OptimizerGroupOf(optimizer, name) == &group;
}

// Checks that the group decides for a variable or table.
absl::Status CheckMatches(const std::string& path, const v1::OptimizerConfig& optimizer,
                          const Group& group, const OptimizedNames& names) {
  bool matches = false, matches_trained = false;
  for (const VariableSpec& variable : names.variables) {
    if (!MatchesPattern(group.variables(), variable.name)) continue;
    matches = true;
    if (!variable.trained()) continue;
    matches_trained = true;
    if (Decides(optimizer, group, variable.name)) return absl::OkStatus();
  }
  for (const TableSpec& table : names.tables) {
    if (!MatchesPattern(group.variables(), table.name)) continue;
    matches = matches_trained = true;
    if (Decides(optimizer, group, table.name)) return absl::OkStatus();
  }
  const std::string what = names.tables.empty() ? "a variable" : "a variable or table";
  const std::string expected = !matches ? "a pattern that matches " + what
                               : !matches_trained
                                   ? "a pattern that matches more than moving averages"
                                   : "a pattern that matches " + what + " of no group before it";
  return FieldError(path + ".variables", expected, Quoted(group.variables()));
}

// Checks that no variable has an algorithm of rows alone.
absl::Status CheckKindOfVariables(const v1::OptimizerConfig& optimizer,
                                  absl::Span<const VariableSpec> variables) {
  for (const VariableSpec& variable : variables) {
    if (!variable.trained()) continue;
    const Group* const group = OptimizerGroupOf(optimizer, variable.name);
    const bool own = group != nullptr && group->kind_case() != Group::KIND_NOT_SET;
    if (group != nullptr && group->frozen()) continue;
    if (!(own ? group->has_row_wise_adagrad() : optimizer.has_row_wise_adagrad())) continue;
    const std::string path =
        own ? absl::StrCat("optimizer.groups[", group - &optimizer.groups(0), "]") : "optimizer";
    return FieldError(path + ".row_wise_adagrad", "an algorithm for variables",
                      absl::StrCat("one for the rows of tables alone, and ", variable.name));
  }
  return absl::OkStatus();
}

// Checks that no table has an epsilon that depends on the number of updates, which differs from row
// to row.
absl::Status CheckKindOfTables(const v1::OptimizerConfig& optimizer,
                               absl::Span<const TableSpec> tables) {
  for (const TableSpec& table : tables) {
    const Group* const group = OptimizerGroupOf(optimizer, table.name);
    const bool own = group != nullptr && group->kind_case() != Group::KIND_NOT_SET;
    if (group != nullptr && group->frozen()) continue;
    const bool adam =
        own ? group->adam().corrected_epsilon() : optimizer.adam().corrected_epsilon();
    const bool adamw =
        own ? group->adamw().corrected_epsilon() : optimizer.adamw().corrected_epsilon();
    if (!adam && !adamw) continue;
    const std::string path =
        own ? absl::StrCat("optimizer.groups[", group - &optimizer.groups(0), "]") : "optimizer";
    return FieldError(absl::StrCat(path, adam ? ".adam" : ".adamw", ".corrected_epsilon"),
                      "false for tables", absl::StrCat("true, and ", table.name));
  }
  return absl::OkStatus();
}

bool IsFrozenTable(const v1::OptimizerConfig& optimizer, const TableSpec& table) {
  const Group* const group = OptimizerGroupOf(optimizer, table.name);
  return group != nullptr && group->frozen();
}

absl::Status CheckGroups(const v1::OptimizerConfig& optimizer, const OptimizedNames& names) {
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    const std::string path = absl::StrCat("optimizer.groups[", i, "]");
    RETURN_IF_ERROR(CheckGroup(path, optimizer, optimizer.groups(i)));
    RETURN_IF_ERROR(CheckMatches(path, optimizer, optimizer.groups(i), names));
  }
  RETURN_IF_ERROR(CheckKindOfVariables(optimizer, names.variables));
  RETURN_IF_ERROR(CheckKindOfTables(optimizer, names.tables));
  const bool trains =
      std::any_of(names.variables.begin(), names.variables.end(),
                  [&](const VariableSpec& variable) {
                    return variable.trained() && !IsFrozen(optimizer, variable);
                  }) ||
      std::any_of(names.tables.begin(), names.tables.end(),
                  [&](const TableSpec& table) { return !IsFrozenTable(optimizer, table); });
  if (trains) return absl::OkStatus();
  return FieldError("optimizer.groups", "a variable that is not frozen", "none");
}

}  // namespace

absl::Status CheckOptimizer(const v1::OptimizerConfig& optimizer, const OptimizedNames& names) {
  if (optimizer.kind_case() == v1::OptimizerConfig::KIND_NOT_SET) {
    return FieldError(
        "optimizer",
        "one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl and row_wise_adagrad", "none");
  }
  RETURN_IF_ERROR(CheckKind("optimizer", optimizer));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_global_norm", optimizer.clip_global_norm()));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_value", optimizer.clip_value()));
  RETURN_IF_ERROR(NotNegative("optimizer.l2", optimizer.l2()));
  return CheckGroups(optimizer, names);
}

bool UsesFtrl(const v1::OptimizerConfig& optimizer) {
  return optimizer.has_ftrl() || std::any_of(optimizer.groups().begin(), optimizer.groups().end(),
                                             [](const Group& group) { return group.has_ftrl(); });
}

}  // namespace keelson
