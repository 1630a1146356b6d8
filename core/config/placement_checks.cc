#include "core/config/placement_checks.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"
#include "core/config/field_checks.h"
#include "core/config/shard_layout.h"

namespace keelson {
namespace {

std::string PlacementPath(int group) { return absl::StrCat("placement.groups[", group, "]"); }

std::vector<std::string> PlacedNames(const ModelVariables& model) {
  std::vector<std::string> names;
  for (const VariableSpec& variable : model.variables) names.push_back(variable.name);
  for (const TableSpec& table : model.tables) names.push_back(table.name);
  return names;
}

// The first group that matches; groups_size(): none.
int FirstPlacementGroup(const v1::PlacementConfig& config, absl::string_view name) {
  int g = 0;
  while (g < config.groups_size() && !MatchesPattern(config.groups(g).variables(), name)) ++g;
  return g;
}

absl::Status CheckGroupDecides(const v1::PlacementConfig& config, int g,
                               const std::vector<std::string>& names) {
  const std::string& pattern = config.groups(g).variables();
  bool matches = false;
  for (const std::string& name : names) {
    if (FirstPlacementGroup(config, name) == g) return absl::OkStatus();
    matches |= MatchesPattern(pattern, name);
  }
  return FieldError(PlacementPath(g) + ".variables",
                    absl::StrCat("a pattern that matches a variable or table",
                                 matches ? " of no group before it" : ""),
                    absl::StrCat("\"", pattern, "\""));
}

absl::Status CheckTablesOnServers(const v1::PlacementConfig& config,
                                  const std::vector<TableSpec>& tables) {
  for (const TableSpec& table : tables) {
    const int g = FirstPlacementGroup(config, table.name);
    if (g == config.groups_size() || config.groups(g).on() == PlacementGroup::PS) continue;
    return FieldError(PlacementPath(g) + ".on",
                      absl::StrCat("PS for the table \"", table.name,
                                   "\", which a group before this one may say"),
                      "WORKERS");
  }
  return absl::OkStatus();
}

absl::Status CheckGroupFits(const std::string& field, PlacementGroup::Place on,
                            const ClusterSpec& cluster) {
  if (on == PlacementGroup::PS) {
    if (!cluster.collective()) return absl::OkStatus();
    return FieldError(field,
                      "WORKERS in a cluster without parameter servers (TF_CONFIG cluster.ps or "
                      "--ps_hosts)",
                      "PS");
  }
  if (cluster.sparse) {
    return FieldError(field, "PS in a cluster that does not list its workers (enableDynamicWorker)",
                      "WORKERS");
  }
  const bool needs_workers =
      cluster.self.role == Role::kChief || cluster.self.role == Role::kWorker;
  if (!cluster.distributed || !needs_workers || cluster.collective() || !cluster.workers.empty()) {
    return absl::OkStatus();
  }
  return FieldError(field,
                    "PS in a cluster that lists no workers (TF_CONFIG cluster.worker or "
                    "--worker_hosts)",
                    "WORKERS");
}

}  // namespace

absl::Status CheckPlacement(const v1::PlacementConfig& config, const ModelVariables& model) {
  const std::vector<std::string> names = PlacedNames(model);
  for (int g = 0; g < config.groups_size(); ++g) {
    const PlacementGroup& group = config.groups(g);
    if (group.variables().empty()) {
      return FieldError(PlacementPath(g) + ".variables", "a pattern for names", "none");
    }
    if (group.on() != PlacementGroup::PS && group.on() != PlacementGroup::WORKERS) {
      return FieldError(
          PlacementPath(g) + ".on", "PS or WORKERS",
          group.on() == PlacementGroup::PLACE_UNSPECIFIED ? "none" : absl::StrCat(group.on()));
    }
    RETURN_IF_ERROR(CheckGroupDecides(config, g, names));
  }
  return CheckTablesOnServers(config, model.tables);
}

absl::Status CheckPlacementFits(const v1::PlacementConfig& config, const ClusterSpec& cluster) {
  for (int g = 0; g < config.groups_size(); ++g) {
    RETURN_IF_ERROR(CheckGroupFits(PlacementPath(g) + ".on", config.groups(g).on(), cluster));
  }
  return absl::OkStatus();
}

}  // namespace keelson
