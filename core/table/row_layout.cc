#include "core/table/row_layout.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/tensor/table_spec.h"

namespace keelson {

absl::StatusOr<RowLayout> RowLayout::Create(int64_t dim, std::vector<RowSlot> slots) {
  if (dim < 1 || dim > TableSpec::kMostDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table's dim: expected 1 to ", TableSpec::kMostDim, ", found ", dim));
  }
  RowLayout layout;
  layout.dim_ = layout.floats_ = dim;
  for (const RowSlot& slot : slots) {
    if (slot.floats != 1 && slot.floats != dim) {
      return absl::InvalidArgumentError(absl::StrCat("a slot of a table's rows: expected 1 or ",
                                                     dim, " floats, found ", slot.floats));
    }
    layout.slot_offsets_.push_back(layout.floats_);
    layout.floats_ += slot.floats;
  }
  layout.slots_ = std::move(slots);
  constexpr size_t kAlignment = 16;
  const size_t bytes = sizeof(RowHeader) + static_cast<size_t>(layout.floats_) * sizeof(float);
  layout.stride_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return layout;
}

RowLayout RowLayout::HeadersOnly() {
  RowLayout layout;
  layout.stride_ = sizeof(RowHeader);
  return layout;
}

void RowLayout::FillSlots(float* values) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    std::fill_n(values + slot_offsets_[i], slots_[i].floats, slots_[i].initial);
  }
}

}  // namespace keelson
