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
  for (const StoredTables* link = stored->tables_.get(); link != nullptr; link = link->base()) {
    stored->links_.push_back(link);
    MutexLock lock(&stored->mu_);
    stored->checked_.emplace_back(link->tables().size());
  }
  return stored;
}

absl::StatusOr<const char*> StoredRows::IdsOf(size_t link, const StoredTable& table,
                                              uint32_t partition, const IdRange& range,
                                              std::vector<int64_t>* buffer) const {
  const StoredTables& stored = *links_[link];
  const BundleReader& bundle = stored.bundle();
  ASSIGN_OR_RETURN(const char* at,
                   bundle.MapElements(range.tensor, BundleDtype::kInt64, range.first, range.count));
  if (at == nullptr) {
    buffer->resize(range.count);
    RETURN_IF_ERROR(bundle.ReadInt64s(range.tensor, range.first, absl::MakeSpan(*buffer)));
    at = reinterpret_cast<const char*>(buffer->data());
  }
  const auto t = static_cast<size_t>(&table - stored.tables().data());
  const size_t kind = range.erased ? 1 : 0;
  {
    MutexLock lock(&mu_);
    if (checked_[link][t][partition][kind]) return at;
  }
  std::vector<uint64_t> ids(range.count);
  std::memcpy(ids.data(), at, ids.size() * sizeof(uint64_t));
  RETURN_IF_ERROR(range.erased ? stored.CheckErasedIds(table, partition, ids)
                               : stored.CheckIds(table, partition, ids));
  MutexLock lock(&mu_);
  checked_[link][t][partition][kind] = true;
  return at;
}

absl::Status StoredRows::SearchRange(
    size_t link, const StoredTable& table, uint32_t partition, const IdRange& range,
    absl::Span<const Sought> sought,
    absl::FunctionRef<void(size_t sought, int64_t place)> visit) const {
  if (range.count == 0 || sought.empty()) return absl::OkStatus();
  std::vector<int64_t> buffer;
  ASSIGN_OR_RETURN(const char* ids, IdsOf(link, table, partition, range, &buffer));
  int64_t at = 0;
  for (size_t i = 0; i < sought.size(); ++i) {
    if (i > 0 && sought[i].id < sought[i - 1].id) at = 0;
    at = LowerBound(ids, at, range.count, sought[i].id);
    if (at < range.count && KeyAt(ids, at) == sought[i].id) visit(i, at);
  }
  return absl::OkStatus();
}

absl::Status StoredRows::Search(size_t link, const StoredTable& table, uint32_t partition,
                                std::vector<Sought>* sought, std::vector<Found>* found) const {
  const StoredTable::Partition& place = table.partitions[partition];
  std::vector<bool> settled(sought->size());
  RETURN_IF_ERROR(SearchRange(link, table, partition,
                              {KeysTensorName(table.spec.name), place.first_row, place.rows},
                              *sought, [&](size_t i, int64_t row) {
                                settled[i] = true;
                                found->push_back({(*sought)[i].position, place.first_row + row});
                              }));
  RETURN_IF_ERROR(SearchRange(
      link, table, partition,
      {ErasedTensorName(table.spec.name), place.first_erased, place.erased, /*erased=*/true},
      *sought, [&](size_t i, int64_t) { settled[i] = true; }));
  size_t kept = 0;
  for (size_t i = 0; i < sought->size(); ++i) {
    if (!settled[i]) (*sought)[kept++] = (*sought)[i];
  }
  sought->resize(kept);
  return absl::OkStatus();
}

absl::Status StoredRows::Copy(const Column& column, const StoredTables& stored,
                              const StoredTable& table, uint32_t partition,
                              absl::Span<const Found> found) const {
  const BundleReader& bundle = stored.bundle();
  const int64_t width = column.width;
  const auto row_bytes = static_cast<size_t>(width * DtypeSize(column.dtype));
  const int64_t first = table.partitions[partition].first_row;
  const int64_t rows = table.partitions[partition].rows;
  ASSIGN_OR_RETURN(const char* from,
                   bundle.MapElements(column.name, column.dtype, first * width, rows * width));
  for (const Found& row : found) {
    char* const to = column.out + row.position * column.stride;
    if (from != nullptr) {
      std::memcpy(to, from + static_cast<size_t>(row.row - first) * row_bytes, row_bytes);
    } else if (column.dtype == BundleDtype::kInt32) {
      RETURN_IF_ERROR(bundle.ReadInt32s(column.name, row.row * width,
                                        {reinterpret_cast<int32_t*>(to), row_bytes / 4}));
    } else {
      RETURN_IF_ERROR(bundle.ReadElements(
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
  auto* out = reinterpret_cast<char*>(matrix->rows.data());
  for (Column& column : columns) {
    column.out = out;
    column.stride = matrix->floats * sizeof(float);
    out += static_cast<size_t>(column.width) * sizeof(float);
  }
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
  std::vector<Sought> sought;
  std::vector<Found> found;
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    const uint32_t partition = partition_of(begin);
    for (end = begin + 1; end < ids.size() && partition_of(end) == partition;) ++end;
    sought.clear();
    for (size_t i = begin; i < end; ++i) sought.push_back({ids[i], i});
    for (size_t link = 0; link < links_.size() && !sought.empty(); ++link) {
      const StoredTables& stored = *links_[link];
      const StoredTable& in_link = link == 0 ? table : *stored.Find(table.spec.name);
      found.clear();
      RETURN_IF_ERROR(Search(link, in_link, partition, &sought, &found));
      for (const Found& row : found) matrix->present[row.position] = true;
      if (found.empty()) continue;
      for (const Column& column : columns) {
        // A slot that the bundle lacks keeps its initial value.
        if (!stored.bundle().Contains(column.name)) continue;
        RETURN_IF_ERROR(Copy(column, stored, in_link, partition, found));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace keelson
