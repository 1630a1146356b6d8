#include "core/optim/table_optimizers.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/optim/group_settings.h"

namespace keelson {
namespace {

using Group = v1::OptimizerConfig::Group;

absl::StatusOr<std::unique_ptr<RowOptimizer>> CreateInGroup(
    const VariableOptimizers::Config& config, const Group& group, size_t dim) {
  if (group.frozen()) return CreateFrozenRows(dim);
  ASSIGN_OR_RETURN(const GroupSettings settings,
                   SettingsOfGroup(config.optimizer, group, config.base_rate));
  return CreateRowOptimizer(settings.optimizer, settings.adjustment, dim);
}

absl::StatusOr<std::unique_ptr<RowOptimizer>> CreateOfTable(
    const VariableOptimizers::Config& config, const TableSpec& table) {
  const auto dim = static_cast<size_t>(table.dim);
  const Group* const group = OptimizerGroupOf(config.optimizer, table.name);
  if (group == nullptr) return CreateRowOptimizer(config.optimizer, {}, dim);
  absl::StatusOr<std::unique_ptr<RowOptimizer>> optimizer = CreateInGroup(config, *group, dim);
  if (optimizer.ok()) return optimizer;
  const auto& groups = config.optimizer.groups();
  const auto at = std::find_if(groups.begin(), groups.end(),
                               [&](const Group& candidate) { return &candidate == group; });
  return ErrorOfGroup(static_cast<int>(at - groups.begin()), optimizer.status());
}

}  // namespace

absl::StatusOr<TableOptimizers> TableOptimizers::Create(const VariableOptimizers::Config& config,
                                                        absl::Span<const TableSpec> tables) {
  if (!tables.empty() && config.stale_gradients.has_delay_compensation()) {
    return absl::InvalidArgumentError(
        "consistency.stale_gradients.delay_compensation: expected none with tables, whose rows it "
        "would need as each worker had them, found some");
  }
  TableOptimizers out;
  for (const TableSpec& table : tables) {
    ASSIGN_OR_RETURN(out.optimizers_.emplace_back(), CreateOfTable(config, table));
  }
  return out;
}

}  // namespace keelson
