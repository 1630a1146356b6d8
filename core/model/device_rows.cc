#include "core/model/device_rows.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace keelson {

DeviceRows::DeviceRows(const ModelSpec* spec, Device* device)
    : spec_(spec), device_(device), tables_(spec->tables.size()) {}

absl::StatusOr<bool> DeviceRows::Reserve(size_t table, int64_t rows) {
  Table& t = tables_[table];
  if (t.values != nullptr && rows <= t.room) return false;
  t.values.reset();
  t.gradient.reset();
  t.rows.reset();
  // Batches to come have a few rows more or less.
  t.room = std::max<int64_t>(1, rows + rows / 2);
  ASSIGN_OR_RETURN(t.values, device_->Allocate(t.room * spec_->tables[table].dim));
  absl::StatusOr<std::unique_ptr<DeviceMemory>> gradient = device_->Allocate(t.values->size());
  if (!gradient.ok()) {
    t.values.reset();
    return gradient.status();
  }
  t.gradient = *std::move(gradient);
  return true;
}

void DeviceRows::Set(size_t table, absl::Span<const float> values) {
  device_->CopyToDevice(values, tables_[table].values.get());
  tables_[table].rows = static_cast<int64_t>(values.size()) / spec_->tables[table].dim;
}

void DeviceRows::Free() {
  for (Table& table : tables_) {
    table.values.reset();
    table.gradient.reset();
    table.rows.reset();
  }
}

Parameter DeviceRows::ParameterOf(size_t table, size_t stage) const {
  const Table& t = tables_[table];
  return {t.values.get(), t.gradient.get(), /*adds=*/stage < t.stages.last};
}

}  // namespace keelson
