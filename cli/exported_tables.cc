#include "cli/exported_tables.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "core/base/status_macros.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/table/row_id.h"
#include "core/tensor_files/table_tensors.h"

namespace keelson {
namespace {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorSource>> ExportedTables::Create(
    std::unique_ptr<TensorSource> source, bool slots) {
  ASSIGN_OR_RETURN(const StoredTables* const stored, source->Tables());
  if (stored == nullptr) return source;
  std::unique_ptr<ExportedTables> tables(new ExportedTables(std::move(source), stored));
  std::set<std::string> columns;
  for (const StoredTable& table : stored->tables()) {
    columns.merge(TableTensorNames(*stored, table));
    RETURN_IF_ERROR(tables->AddTable(table, slots));
  }
  for (const StoredTable& ghosts : stored->ghosts()) {
    columns.merge(TableTensorNames(*stored, ghosts));
  }
  for (TensorInfo& tensor : tables->source_->List()) {
    if (columns.count(tensor.name) == 0) tables->others_.push_back(std::move(tensor));
  }
  return tables;
}

absl::Status ExportedTables::AddTable(const StoredTable& table, bool slots) {
  const std::string& name = table.spec.name;
  std::vector<std::string> missing;
  RETURN_IF_ERROR(stored_->CheckColumns(table, {}, &missing));
  const int64_t rows = table.AllRows();
  const auto add = [&](std::string tensor, BundleDtype dtype, Shape shape, auto bytes,
                       std::vector<TableSlot> of_slots = {}) {
    TensorInfo info{std::move(tensor), dtype, std::move(shape)};
    columns_.emplace(info.name, Column{&table, info, bytes, std::move(of_slots)});
  };
  add(KeysTensorName(name), BundleDtype::kInt64, Shape({rows}),
      [](const TableColumns& columns) { return BytesOf(columns.ids); });
  add(ValuesTensorName(name), BundleDtype::kFloat32, Shape({rows, table.spec.dim}),
      [](const TableColumns& columns) { return BytesOf(columns.values); });
  if (!slots) return absl::OkStatus();
  add(LastStepTensorName(name), BundleDtype::kInt32, Shape({rows}),
      [](const TableColumns& columns) { return BytesOf(columns.last_steps); });
  add(UpdatesTensorName(name), BundleDtype::kInt32, Shape({rows}),
      [](const TableColumns& columns) { return BytesOf(columns.updates); });
  for (const TableSlot& slot : stored_->SlotsOf(table)) {
    add(SlotTensorName(name, slot.name), BundleDtype::kFloat32, Shape({rows, slot.floats}),
        [](const TableColumns& columns) { return BytesOf(columns.slots[0]); }, {slot});
  }
  return absl::OkStatus();
}

std::vector<TensorInfo> ExportedTables::List() const {
  std::vector<TensorInfo> tensors = others_;
  for (const auto& [name, column] : columns_) tensors.push_back(column.info);
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return tensors;
}

absl::StatusOr<std::string> ExportedTables::Read(absl::string_view name) {
  const auto found = columns_.find(name);
  if (found == columns_.end()) return source_->Read(name);
  const Column& column = found->second;
  std::string bytes;
  TableColumns columns;
  for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
    RETURN_IF_ERROR(stored_->Read(*column.table, column.slots, partition, &columns));
    bytes += column.bytes(columns);
  }
  return bytes;
}

absl::StatusOr<std::vector<std::string>> ExportedTables::ReadStrings(absl::string_view name) {
  return source_->ReadStrings(name);
}

absl::StatusOr<std::vector<TensorInfo>> ExportedTables::Variables() {
  ASSIGN_OR_RETURN(std::vector<TensorInfo> variables, source_->Variables());
  for (const auto& [name, column] : columns_) {
    const bool kept = name != KeysTensorName(column.table->spec.name) &&
                      name != ValuesTensorName(column.table->spec.name);
    if (!kept) variables.push_back(column.info);
  }
  std::sort(variables.begin(), variables.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return variables;
}

}  // namespace keelson
