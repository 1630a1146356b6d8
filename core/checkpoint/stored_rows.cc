#include "core/checkpoint/stored_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/table/initial_rows.h"

namespace keelson {
namespace {

// Stored numbers lie at any address.
uint64_t KeyAt(const char* keys, int64_t i) {
  uint64_t key;
  std::memcpy(&key, keys + i * static_cast<int64_t>(sizeof(key)), sizeof(key));
  return key;
}

// The first of the keys from `from` on that is not less than `id`; `rows`: none. Fast where it is
// near: the next id of a sorted batch.
int64_t LowerBound(const char* keys, int64_t from, int64_t rows, uint64_t id) {
  int64_t step = 1;
  int64_t end = from;
  while (end < rows && KeyAt(keys, end) < id) {
    from = end + 1;
    end = step < rows - end ? end + step : rows;
    step *= 2;
  }
  while (from < end) {
    const int64_t middle = from + (end - from) / 2;
    if (KeyAt(keys, middle) < id) {
      from = middle + 1;
    } else {
      end = middle;
    }
  }
  return from;
}

}  // namespace

struct StoredRows::Column {
  std::string name;
  BundleDtype dtype;
  int64_t width = 1;  // numbers in a row
  // Row i goes to out + i * stride bytes.
  char* out = nullptr;
  size_t stride = 0;
};

absl::StatusOr<std::unique_ptr<StoredRows>> StoredRows::Open(const std::string& prefix,
                                                             FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix, file_system));
  std::unique_ptr<StoredRows> stored(new StoredRows(std::move(bundle)));
  ASSIGN_OR_RETURN(StoredTables tables, StoredTables::Open(stored->bundle_.get()));
  for (const StoredTable& table : tables.tables()) {
    std::vector<std::string> missing;
    RETURN_IF_ERROR(tables.CheckColumns(table, {}, &missing));
  }
  stored->tables_ = std::make_unique<StoredTables>(std::move(tables));
  MutexLock lock(&stored->mu_);
  stored->checked_.resize(stored->tables_->tables().size());
  return stored;
}

absl::StatusOr<const char*> StoredRows::KeysOf(const StoredTable& table, uint32_t partition,
                                               std::vector<int64_t>* buffer) const {
  const auto [first, rows] = table.partitions[partition];
  const std::string name = KeysTensorName(table.spec.name);
  ASSIGN_OR_RETURN(const char* keys, bundle_->MapElements(name, BundleDtype::kInt64, first, rows));
  if (keys == nullptr) {
    buffer->resize(rows);
    RETURN_IF_ERROR(bundle_->ReadInt64s(name, first, absl::MakeSpan(*buffer)));
    keys = reinterpret_cast<const char*>(buffer->data());
  }
  const size_t t = static_cast<size_t>(&table - tables_->tables().data());
  {
    MutexLock lock(&mu_);
    if (checked_[t][partition]) return keys;
  }
  std::vector<uint64_t> ids(rows);
  std::memcpy(ids.data(), keys, ids.size() * sizeof(uint64_t));
  RETURN_IF_ERROR(tables_->CheckIds(table, partition, ids));
  MutexLock lock(&mu_);
  checked_[t][partition] = true;
  return keys;
}

absl::Status StoredRows::Search(const StoredTable& table, uint32_t partition,
                                absl::Span<const uint64_t> ids, size_t position,
                                std::vector<Found>* found) const {
  const auto [first, rows] = table.partitions[partition];
  if (rows == 0) return absl::OkStatus();
  std::vector<int64_t> buffer;
  ASSIGN_OR_RETURN(const char* keys, KeysOf(table, partition, &buffer));
  int64_t at = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && ids[i] < ids[i - 1]) at = 0;
    at = LowerBound(keys, at, rows, ids[i]);
    if (at < rows && KeyAt(keys, at) == ids[i]) found->push_back({position + i, first + at});
  }
  return absl::OkStatus();
}

absl::Status StoredRows::Copy(const Column& column, const StoredTable& table, uint32_t partition,
                              absl::Span<const Found> found) const {
  const int64_t width = column.width;
  const auto row_bytes = static_cast<size_t>(width * DtypeSize(column.dtype));
  const auto [first, rows] = table.partitions[partition];
  ASSIGN_OR_RETURN(const char* from,
                   bundle_->MapElements(column.name, column.dtype, first * width, rows * width));
  for (const Found& row : found) {
    char* const to = column.out + row.position * column.stride;
    if (from != nullptr) {
      std::memcpy(to, from + static_cast<size_t>(row.row - first) * row_bytes, row_bytes);
    } else if (column.dtype == BundleDtype::kInt32) {
      RETURN_IF_ERROR(bundle_->ReadInt32s(column.name, row.row * width,
                                          {reinterpret_cast<int32_t*>(to), row_bytes / 4}));
    } else {
      RETURN_IF_ERROR(bundle_->ReadElements(
          column.name, row.row * width,
          absl::MakeSpan(reinterpret_cast<float*>(to), row_bytes / sizeof(float))));
    }
  }
  return absl::OkStatus();
}

absl::Status StoredRows::Read(const StoredTable& table, absl::Span<const uint64_t> ids,
                              const Wanted& wanted, RowMatrix* matrix) const {
  const std::string& name = table.spec.name;
  std::vector<Column> columns = {
      {ValuesTensorName(name), BundleDtype::kFloat32, table.spec.dim, nullptr, 0}};
  matrix->floats = static_cast<size_t>(table.spec.dim);
  for (const TableSlot& slot : wanted.slots) {
    columns.push_back(
        {SlotTensorName(name, slot.name), BundleDtype::kFloat32, slot.floats, nullptr, 0});
    matrix->floats += static_cast<size_t>(slot.floats);
  }
  std::vector<std::string> missing;
  RETURN_IF_ERROR(tables_->CheckColumns(table, wanted.slots, &missing));
  FillInitial(table, ids, wanted, matrix);
  if (ids.empty()) return absl::OkStatus();
  // Slots that the bundle lacks keep their initial values.
  auto* out = reinterpret_cast<char*>(matrix->rows.data());
  for (Column& column : columns) {
    column.out = out;
    column.stride = matrix->floats * sizeof(float);
    out += static_cast<size_t>(column.width) * sizeof(float);
  }
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [&](const Column& column) {
                                 return std::find(missing.begin(), missing.end(), column.name) !=
                                        missing.end();
                               }),
                columns.end());
  if (wanted.counters) {
    columns.push_back({LastStepTensorName(name), BundleDtype::kInt32, 1,
                       reinterpret_cast<char*>(matrix->last_steps.data()), sizeof(uint32_t)});
    columns.push_back({UpdatesTensorName(name), BundleDtype::kInt32, 1,
                       reinterpret_cast<char*>(matrix->updates.data()), sizeof(uint32_t)});
  }
  return ReadRuns(table, ids, columns, matrix);
}

void StoredRows::FillInitial(const StoredTable& table, absl::Span<const uint64_t> ids,
                             const Wanted& wanted, RowMatrix* matrix) {
  const InitialRows initial(table.spec.initializer, table.seed, table.salt);
  matrix->present.assign(ids.size(), false);
  matrix->rows.resize(ids.size() * matrix->floats);
  matrix->last_steps.assign(wanted.counters ? ids.size() : 0, 0);
  matrix->updates.assign(wanted.counters ? ids.size() : 0, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    float* row = matrix->rows.data() + i * matrix->floats;
    initial.Fill(ids[i], {row, static_cast<size_t>(table.spec.dim)});
    row += table.spec.dim;
    for (const TableSlot& slot : wanted.slots)
      row = std::fill_n(row, slot.floats, slot.initial_value);
  }
}

absl::Status StoredRows::ReadRuns(const StoredTable& table, absl::Span<const uint64_t> ids,
                                  absl::Span<const Column> columns, RowMatrix* matrix) const {
  const auto partition_of = [&](size_t i) { return RowPartitionOf(MixId(ids[i], table.salt)); };
  std::vector<Found> found;
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    const uint32_t partition = partition_of(begin);
    for (end = begin + 1; end < ids.size() && partition_of(end) == partition;) ++end;
    found.clear();
    RETURN_IF_ERROR(Search(table, partition, ids.subspan(begin, end - begin), begin, &found));
    for (const Found& row : found) matrix->present[row.position] = true;
    if (found.empty()) continue;
    for (const Column& column : columns) {
      RETURN_IF_ERROR(Copy(column, table, partition, found));
    }
  }
  return absl::OkStatus();
}

}  // namespace keelson
