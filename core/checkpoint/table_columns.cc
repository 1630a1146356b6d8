#include "core/checkpoint/table_columns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/stored_blocks.h"

namespace keelson {
namespace {

// Unsigned numbers are stored by their bits: TensorFlow's tools know few operations on others.
absl::Span<const int64_t> AsSigned(const std::vector<uint64_t>& numbers) {
  return {reinterpret_cast<const int64_t*>(numbers.data()), numbers.size()};
}
absl::Span<const int32_t> AsSigned(const std::vector<uint32_t>& numbers) {
  return {reinterpret_cast<const int32_t*>(numbers.data()), numbers.size()};
}

class ColumnWriter {
 public:
  ColumnWriter(const TableRowRange& range, int64_t rows, BundleDataWriter* writer,
               absl::FunctionRef<absl::Status()> go_on)
      : range_(range), end_(range.first + rows), writer_(writer), go_on_(go_on) {}

  // `floats` numbers in each row.
  absl::Status WriteMatrix(const std::string& name, int64_t floats,
                           absl::Span<const float> values) {
    return Write(name, Shape({range_.total, floats}), BundleDtype::kFloat32, values);
  }
  absl::Status WriteColumn(const std::string& name, absl::Span<const int64_t> values) {
    return Write(name, Shape({range_.total}), BundleDtype::kInt64, values);
  }
  absl::Status WriteColumn(const std::string& name, absl::Span<const int32_t> values) {
    return Write(name, Shape({range_.total}), BundleDtype::kInt32, values);
  }

 private:
  template <typename T>
  absl::Status Write(const std::string& name, const Shape& shape, BundleDtype dtype,
                     absl::Span<const T> values) {
    RETURN_IF_ERROR(go_on_());
    RETURN_IF_ERROR(writer_->BeginSlice(name, shape, range_.first, end_, dtype));
    RETURN_IF_ERROR(writer_->AppendValues(values));
    return writer_->EndSlice();
  }

  const TableRowRange range_;
  const int64_t end_;
  BundleDataWriter* const writer_;
  const absl::FunctionRef<absl::Status()> go_on_;
};

}  // namespace

std::vector<TableSlot> TableSlotsOf(absl::Span<const RowSlotSpec> slots) {
  std::vector<TableSlot> stored;
  for (const RowSlotSpec& slot : slots) {
    stored.push_back({slot.name, static_cast<int64_t>(slot.floats), slot.initial_value});
  }
  return stored;
}

std::string KeysTensorName(absl::string_view table) { return absl::StrCat(table, "/keys"); }
std::string ValuesTensorName(absl::string_view table) { return absl::StrCat(table, "/values"); }
std::string LastStepTensorName(absl::string_view table) {
  return absl::StrCat(table, "/last_step");
}
std::string UpdatesTensorName(absl::string_view table) { return absl::StrCat(table, "/updates"); }
std::string ErasedTensorName(absl::string_view table) { return absl::StrCat(table, "/erased"); }

void TableColumns::Clear(size_t num_slots) {
  ids.clear();
  values.clear();
  slots.resize(num_slots);
  for (std::vector<float>& slot : slots) slot.clear();
  last_steps.clear();
  updates.clear();
}

void TableColumns::Resize(size_t rows, size_t dim, absl::Span<const TableSlot> of) {
  ids.resize(rows);
  values.resize(rows * dim);
  slots.resize(of.size());
  for (size_t i = 0; i < of.size(); ++i) slots[i].resize(rows * static_cast<size_t>(of[i].floats));
  last_steps.resize(rows);
  updates.resize(rows);
}

void TableColumns::Copy(const TableColumns& from, size_t row, size_t to) {
  const auto copy = [&](const std::vector<float>& in, std::vector<float>* out) {
    const size_t width = out->size() / ids.size();
    std::copy_n(in.data() + row * width, width, out->data() + to * width);
  };
  ids[to] = from.ids[row];
  copy(from.values, &values);
  for (size_t i = 0; i < slots.size(); ++i) copy(from.slots[i], &slots[i]);
  last_steps[to] = from.last_steps[row];
  updates[to] = from.updates[row];
}

absl::Status WriteTableColumns(absl::string_view table, int64_t dim,
                               absl::Span<const TableSlot> slots, const TableColumns& columns,
                               const TableRowRange& range, BundleDataWriter* writer,
                               absl::FunctionRef<absl::Status()> go_on) {
  if (columns.rows() == 0 && range.total > 0) return absl::OkStatus();
  ColumnWriter out(range, columns.rows(), writer, go_on);
  RETURN_IF_ERROR(out.WriteColumn(KeysTensorName(table), AsSigned(columns.ids)));
  if (dim > 0) RETURN_IF_ERROR(out.WriteMatrix(ValuesTensorName(table), dim, columns.values));
  for (size_t i = 0; i < slots.size(); ++i) {
    RETURN_IF_ERROR(
        out.WriteMatrix(SlotTensorName(table, slots[i].name), slots[i].floats, columns.slots[i]));
  }
  RETURN_IF_ERROR(out.WriteColumn(LastStepTensorName(table), AsSigned(columns.last_steps)));
  return out.WriteColumn(UpdatesTensorName(table), AsSigned(columns.updates));
}

absl::Status WriteErasedIds(absl::string_view table, const std::vector<uint64_t>& ids,
                            const TableRowRange& range, BundleDataWriter* writer,
                            absl::FunctionRef<absl::Status()> go_on) {
  if (ids.empty() && range.total > 0) return absl::OkStatus();
  ColumnWriter out(range, static_cast<int64_t>(ids.size()), writer, go_on);
  return out.WriteColumn(ErasedTensorName(table), AsSigned(ids));
}

}  // namespace keelson
