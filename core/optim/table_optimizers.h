// The optimizers of a model's tables: OptimizerConfig with its groups, resolved for rows.
#ifndef KEELSON_CORE_OPTIM_TABLE_OPTIMIZERS_H_
#define KEELSON_CORE_OPTIM_TABLE_OPTIMIZERS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/optim/optimizer_groups.h"
#include "core/optim/row_optimizer.h"
#include "core/tensor/table_spec.h"

namespace keelson {

// Immutable, and movable.
class TableOptimizers {
 public:
  // Groups match tables by name as they match variables; those that decide for no table are left
  // out. INVALID_ARGUMENT as CreateRowOptimizer's, the text of a group starting with
  // "optimizer.groups[1]."; or there are tables, and delay compensation, which they do not have.
  static absl::StatusOr<TableOptimizers> Create(const VariableOptimizers::Config& config,
                                                absl::Span<const TableSpec> tables);

  // Of a position in `tables`; lives as long as this, also when it is moved.
  const RowOptimizer& Of(size_t table) const { return *optimizers_[table]; }

 private:
  TableOptimizers() = default;

  std::vector<std::unique_ptr<RowOptimizer>> optimizers_;  // by table
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_TABLE_OPTIMIZERS_H_
