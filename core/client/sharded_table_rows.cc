#include "core/client/sharded_table_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::Status ShardedTableRows::Want(std::shared_ptr<const RowIds> ids) {
  ASSIGN_OR_RETURN(wanted_, BatchIds::Create(layout_.tables, std::move(ids)));
  return absl::OkStatus();
}

const std::shared_ptr<const RowIds>& ShardedTableRows::ids() const {
  static const std::shared_ptr<const RowIds> nobody;
  return batch_ == nullptr ? nobody : batch_->ids();
}

std::shared_ptr<RowTransfer> ShardedTableRows::BeginPull() {
  const std::shared_ptr<const BatchIds>& batch = wanted_ == nullptr ? batch_ : wanted_;
  if (batch == nullptr) return nullptr;
  under_way_ = RowTransfer::ForPull(&layout_, driver_->plans(), batch, std::move(spare_));
  return under_way_;
}

void ShardedTableRows::BeginStep(size_t slot, bool aggregated) {
  slot_ = slot;
  aggregated_ = aggregated;
  offered_ = false;
}

absl::Status ShardedTableRows::Offer(absl::Span<const absl::Span<const float>> gradients) {
  RETURN_IF_ERROR(CheckGradients(gradients));
  offered_ = true;
  under_way_ = RowTransfer::ForPush(&layout_, driver_->plans(), *batch_, gradients,
                                    aggregated_ ? nullptr : wanted_, std::move(spare_));
  driver_->RowsReady(slot_, under_way_);
  return absl::OkStatus();
}

absl::Status ShardedTableRows::CheckGradients(TableGradients gradients) const {
  if (batch_ == nullptr || offered_) {
    return absl::FailedPreconditionError(
        offered_ ? "rows: expected gradients once in a step, found them again"
                 : "rows: expected gradients of rows that were fetched, found none fetched");
  }
  if (gradients.size() != values_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("rows: expected gradients of ", values_.size(),
                                                   " tables, found ", gradients.size()));
  }
  for (size_t t = 0; t < values_.size(); ++t) {
    if (gradients[t].size() == values_[t].size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rows of table \"", layout_.tables[t].name,
                                                   "\": expected gradients of ", values_[t].size(),
                                                   " elements, found ", gradients[t].size()));
  }
  return absl::OkStatus();
}

absl::Status ShardedTableRows::CheckOffered() const {
  if (offered_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "rows: expected the gradients of the step's rows before its end, found none");
}

void ShardedTableRows::Landed() {
  if (under_way_ == nullptr) return;
  const std::shared_ptr<RowTransfer> step = std::exchange(under_way_, nullptr);
  if (step->wanted() == nullptr) {
    spare_ = step->TakeMatrices();
    return;
  }
  spare_ = std::exchange(rows_, step->TakeMatrices());
  batch_ = step->wanted();
  wanted_.reset();
  values_.assign(rows_.begin(), rows_.end());
}

}  // namespace keelson
