// How a row of an embedding table lies in memory: a header, the values, then the optimizer's slots,
// without gaps; float32 throughout.
#ifndef KEELSON_CORE_TABLE_ROW_LAYOUT_H_
#define KEELSON_CORE_TABLE_ROW_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace keelson {

// What a row carries beside values and slots. The row table sets `id` and all of `state` but
// `admitted`; the rest belongs to the owner of the table and is 0 in a new row.
struct RowHeader {
  uint64_t id;
  uint32_t last_step;  // of the last update
  uint16_t updates;    // saturates
  uint16_t state;

  // The generation of the table's last cut before the row's last change, modulo 2^14
  // (RowTable::AgeOf).
  uint16_t changed() const { return state & kChanged; }
  bool admitted() const { return (state & kAdmitted) != 0; }
  void set_admitted(bool admitted) {
    state = static_cast<uint16_t>(admitted ? state | kAdmitted : state & ~kAdmitted);
  }

  // RowLayout::floats() numbers: the values, then the slots.
  float* values() { return reinterpret_cast<float*>(this + 1); }
  const float* values() const { return reinterpret_cast<const float*>(this + 1); }

  // For the row table.
  bool live() const { return (state & kLive) != 0; }
  void set_changed(uint32_t generation) {
    state = static_cast<uint16_t>((state & ~kChanged) | (generation & kChanged));
  }
  static constexpr uint16_t kChanged = (1 << 14) - 1;
  static constexpr uint16_t kAdmitted = 1 << 14;
  static constexpr uint16_t kLive = 1 << 15;
};
static_assert(sizeof(RowHeader) == 16);

// What an optimizer keeps in every row.
struct RowSlot {
  int64_t floats = 0;  // as many as the row has values, or 1
  float initial = 0;
};

// Immutable.
class RowLayout {
 public:
  // INVALID_ARGUMENT: `dim`, the number of values, is not in [1, TableSpec::kMostDim], or a slot
  // has neither 1 nor `dim` floats.
  static absl::StatusOr<RowLayout> Create(int64_t dim, std::vector<RowSlot> slots);

  // Of rows that are headers alone: ids with their counters.
  static RowLayout HeadersOnly();

  int64_t dim() const { return dim_; }
  const std::vector<RowSlot>& slots() const { return slots_; }
  // Values and slots of a row.
  int64_t floats() const { return floats_; }
  // Where slot `slot` begins, in floats from the first value.
  int64_t SlotOffset(size_t slot) const { return slot_offsets_[slot]; }
  // Bytes from one row to the next: a multiple of 16.
  size_t stride() const { return stride_; }

  // Writes the initial slots behind the values.
  void FillSlots(float* values) const;

 private:
  RowLayout() = default;

  int64_t dim_ = 0;
  std::vector<RowSlot> slots_;
  std::vector<int64_t> slot_offsets_;
  int64_t floats_ = 0;
  size_t stride_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_LAYOUT_H_
