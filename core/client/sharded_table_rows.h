// TableRows over the servers of a placement.
#ifndef KEELSON_CORE_CLIENT_SHARDED_TABLE_ROWS_H_
#define KEELSON_CORE_CLIENT_SHARDED_TABLE_ROWS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/client/exchange/exchange_driver.h"
#include "core/client/exchange/row_transfer.h"
#include "core/client/plan/row_plan.h"
#include "core/client/services/table_rows.h"

namespace keelson {

// The part of a ShardedParameterClient that knows of rows; the client says when steps and pulls
// begin and end.
class ShardedTableRows : public TableRows {
 public:
  // `driver` outlives this, but is used only after the client was made.
  ShardedTableRows(TablePlan layout, ExchangeDriver* driver)
      : layout_(std::move(layout)), driver_(driver) {}

  absl::Status Want(std::shared_ptr<const RowIds> ids) override;
  const std::shared_ptr<const RowIds>& ids() const override;
  absl::Span<const absl::Span<const float>> values() const override { return values_; }
  absl::Status Offer(absl::Span<const absl::Span<const float>> gradients) override;
  absl::Status OfferOf(std::shared_ptr<const RowIds> ids,
                       absl::Span<const absl::Span<const float>> gradients) override;

  const TablePlan& layout() const { return layout_; }

  // The rows that a pull fetches; null: none are wanted, now or before.
  std::shared_ptr<RowTransfer> BeginPull();
  void BeginStep(size_t slot, bool aggregated);
  // FAILED_PRECONDITION: the step's gradients have not been offered.
  absl::Status CheckOffered() const;
  // All answers of what was begun have arrived.
  void Landed();

 private:
  absl::Status OfferRows(const BatchIds* batch, TableGradients gradients);
  absl::Status CheckGradients(const BatchIds* batch, TableGradients gradients) const;

  const TablePlan layout_;
  ExchangeDriver* const driver_;
  size_t slot_ = 0;  // of the step
  bool aggregated_ = false;
  bool offered_ = false;
  std::shared_ptr<const BatchIds> wanted_;  // since the last rows came
  std::shared_ptr<const BatchIds> batch_;   // whose rows are values_
  RowMatrices rows_;
  std::vector<absl::Span<const float>> values_;
  RowMatrices spare_;
  std::shared_ptr<RowTransfer> under_way_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SHARDED_TABLE_ROWS_H_
