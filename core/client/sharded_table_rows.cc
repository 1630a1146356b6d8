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
  return OfferRows(batch_.get(), gradients);
}

absl::Status ShardedTableRows::OfferOf(std::shared_ptr<const RowIds> ids,
                                       absl::Span<const absl::Span<const float>> gradients) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const BatchIds> batch,
                   BatchIds::Create(layout_.tables, std::move(ids)));
  return OfferRows(batch.get(), gradients);
}

absl::Status ShardedTableRows::OfferRows(const BatchIds* batch, TableGradients gradients) {
  RETURN_IF_ERROR(CheckGradients(batch, gradients));
  offered_ = true;
  under_way_ = RowTransfer::ForPush(&layout_, driver_->plans(), *batch, gradients,
                                    aggregated_ ? nullptr : wanted_, std::move(spare_));
  driver_->RowsReady(slot_, under_way_);
  return absl::OkStatus();
}

absl::Status ShardedTableRows::CheckGradients(const BatchIds* batch,
                                              TableGradients gradients) const {
  if (batch == nullptr || offered_) {
    return absl::FailedPreconditionError(
        offered_ ? "rows: expected gradients once in a step, found them again"
                 : "rows: expected gradients of rows that were fetched, found none fetched");
  }
  const RowIds& ids = *batch->ids();
  if (gradients.size() != ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat("rows: expected gradients of ", ids.size(),
                                                   " tables, found ", gradients.size()));
  }
  for (size_t t = 0; t < ids.size(); ++t) {
    const size_t elements = ids[t].size() * static_cast<size_t>(layout_.tables[t].dim);
    if (gradients[t].size() == elements) continue;
    return absl::InvalidArgumentError(absl::StrCat("rows of table \"", layout_.tables[t].name,
                                                   "\": expected gradients of ", elements,
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
