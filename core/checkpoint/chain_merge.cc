#include "core/checkpoint/chain_merge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

absl::Status GoOn() { return absl::OkStatus(); }

// A table, or the ghosts of one.
struct MergedTable {
  const StoredTable* table = nullptr;
  std::vector<TableSlot> slots;  // in the order of the files
};

class Merger {
 public:
  Merger(const BundleReader& bundle, StoredTables stored, std::string prefix,
         FileSystem* file_system)
      : bundle_(bundle),
        stored_(std::move(stored)),
        prefix_(std::move(prefix)),
        file_system_(file_system) {}

  absl::Status Run() {
    for (const std::vector<StoredTable>* const tables : {&stored_.tables(), &stored_.ghosts()}) {
      for (const StoredTable& table : *tables) RETURN_IF_ERROR(AddTable(table));
    }
    std::vector<BundleIndexEntry> entries;
    const size_t files = bundle_.contents().data_sizes.size();
    for (size_t file = 0; file < files; ++file) {
      ASSIGN_OR_RETURN(
          const std::unique_ptr<BundleDataWriter> writer,
          BundleDataWriter::Create(file_system_, DataPath(prefix_, file, files), file));
      for (const auto& [tensor, slice] : SlicesIn(file)) {
        RETURN_IF_ERROR(Write(*tensor, *slice, writer.get()));
      }
      ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> written, writer->Finish());
      std::move(written.begin(), written.end(), std::back_inserter(entries));
    }
    return WriteBundleIndex(file_system_, prefix_, files, std::move(entries));
  }

 private:
  using Slice = std::pair<const StoredTensor*, const StoredSlice*>;

  absl::Status AddTable(const StoredTable& table) {
    const std::string& name = table.spec.name;
    MergedTable merged = {&table, {}};
    if (table.spec.dim > 0) merged.slots = stored_.SlotsOf(table);
    std::vector<std::string> missing;
    RETURN_IF_ERROR(stored_.CheckColumns(table, merged.slots, &missing));
    if (!missing.empty()) {
      return absl::DataLossError(
          absl::StrCat(bundle_.prefix(), ": a base lacks ", missing.front()));
    }
    std::stable_sort(merged.slots.begin(), merged.slots.end(),
                     [&](const TableSlot& a, const TableSlot& b) {
                       return PlaceOf(name, a) < PlaceOf(name, b);
                     });
    columns_.insert({KeysTensorName(name), ValuesTensorName(name), LastStepTensorName(name),
                     UpdatesTensorName(name), ErasedTensorName(name)});
    for (const TableSlot& slot : merged.slots) columns_.insert(SlotTensorName(name, slot.name));
    tables_.push_back(std::move(merged));
    return absl::OkStatus();
  }

  // Where the slot is first, in the newest link that has rows.
  std::pair<size_t, uint64_t> PlaceOf(const std::string& table, const TableSlot& slot) const {
    for (const StoredTables* link = &stored_; link != nullptr; link = link->base()) {
      if (link->Find(table)->total_rows == 0) continue;
      const auto& tensors = link->bundle().contents().tensors;
      std::pair<size_t, uint64_t> first = {SIZE_MAX, 0};
      for (const StoredSlice& slice : tensors.find(SlotTensorName(table, slot.name))->second.slices)
        first = std::min(first, std::pair(slice.data_shard, slice.offset));
      return first;
    }
    return {};
  }

  // What the file has but for rows of tables, in its order.
  std::vector<Slice> SlicesIn(size_t file) const {
    std::vector<Slice> slices;
    for (const auto& [name, tensor] : bundle_.contents().tensors) {
      if (columns_.contains(name)) continue;
      for (const StoredSlice& slice : tensor.slices) {
        if (slice.data_shard == file) slices.emplace_back(&tensor, &slice);
      }
    }
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.second->offset < b.second->offset;
    });
    return slices;
  }

  absl::Status Write(const StoredTensor& tensor, const StoredSlice& slice,
                     BundleDataWriter* writer) const {
    if (tensor.dtype == BundleDtype::kString) {
      ASSIGN_OR_RETURN(const std::string bytes, bundle_.ReadString(tensor.name));
      if (!absl::StartsWith(tensor.name, kShardStatePrefix)) {
        return writer->AddString(tensor.name, bytes);
      }
      ASSIGN_OR_RETURN(v1::ShardState state, ParseShardState(bytes, bundle_.prefix(), tensor.name));
      return WriteShardsRows(tensor.name, std::move(state), writer);
    }
    if (tensor.shape.rank() == 0) return WriteScalar(tensor, writer);
    if (tensor.dtype != BundleDtype::kFloat32) return NotOurs(tensor);
    const int64_t begin = slice.position.extents[0].start;
    const int64_t end = slice.position.extents[0].end();
    const int64_t row = tensor.shape.num_elements() / std::max<int64_t>(1, tensor.shape.rows());
    std::vector<float> values(static_cast<size_t>((end - begin) * row));
    RETURN_IF_ERROR(bundle_.ReadElements(tensor.name, begin * row, absl::MakeSpan(values)));
    RETURN_IF_ERROR(writer->BeginSlice(tensor.name, tensor.shape, begin, end));
    RETURN_IF_ERROR(writer->AppendValues(values));
    return writer->EndSlice();
  }

  absl::Status WriteScalar(const StoredTensor& tensor, BundleDataWriter* writer) const {
    if (tensor.dtype == BundleDtype::kInt64) {
      ASSIGN_OR_RETURN(const int64_t value, bundle_.ReadInt64(tensor.name));
      return writer->AddInt64(tensor.name, value);
    }
    if (tensor.dtype != BundleDtype::kFloat32) return NotOurs(tensor);
    float value = 0;
    RETURN_IF_ERROR(bundle_.ReadElements(tensor.name, 0, absl::MakeSpan(&value, 1)));
    return writer->AddFloatScalar(tensor.name, value);
  }

  absl::Status NotOurs(const StoredTensor& tensor) const {
    return absl::InvalidArgumentError(absl::StrCat(bundle_.prefix(), ": tensor '", tensor.name,
                                                   "': expected a snapshot of a job, found ",
                                                   DtypeName(tensor.dtype)));
  }

  // As servers do: rows, then the state.
  absl::Status WriteShardsRows(const std::string& name, v1::ShardState state,
                               BundleDataWriter* writer) const {
    std::vector<std::pair<const MergedTable*, TableRowRange>> next;
    for (auto* const tables : {state.mutable_tables(), state.mutable_ghosts()}) {
      for (v1::ShardState::Table& table : *tables) {
        const MergedTable& merged = *Find(table.name());
        table.set_first_row(RowsBefore(*merged.table, state.first_row_partition()));
        table.set_total_rows(merged.table->AllRows());
        if (state.has_base()) table.mutable_rows()->Swap(table.mutable_all_rows());
        table.clear_all_rows();
        table.clear_erased();
        table.clear_first_erased();
        table.clear_total_erased();
        next.emplace_back(&merged, TableRowRange{table.first_row(), table.total_rows()});
      }
    }
    const uint32_t end = state.first_row_partition() + state.num_row_partitions();
    for (uint32_t p = state.first_row_partition(); p < end; ++p) {
      for (auto& [table, range] : next) RETURN_IF_ERROR(WriteRows(*table, p, &range, writer));
    }
    if (state.has_base() && state.ghosts().empty()) state.set_format(kGhostlessShardStateFormat);
    state.clear_base();
    ASSIGN_OR_RETURN(const std::string bytes, SerializeState(state, name));
    return writer->AddString(name, bytes);
  }

  const MergedTable* Find(const std::string& name) const {
    return &*std::find_if(tables_.begin(), tables_.end(), [&](const MergedTable& candidate) {
      return candidate.table->spec.name == name;
    });
  }

  static int64_t RowsBefore(const StoredTable& table, uint32_t partition) {
    int64_t rows = 0;
    for (uint32_t p = 0; p < partition; ++p) rows += table.partitions[p].all_rows;
    return rows;
  }

  absl::Status WriteRows(const MergedTable& merged, uint32_t partition, TableRowRange* range,
                         BundleDataWriter* writer) const {
    const StoredTable& table = *merged.table;
    if (table.partitions[partition].all_rows == 0 && (range->total > 0 || partition > 0)) {
      return absl::OkStatus();
    }
    TableColumns columns;
    RETURN_IF_ERROR(stored_.Read(table, merged.slots, partition, &columns));
    RETURN_IF_ERROR(WriteTableColumns(table.spec.name, table.spec.dim, merged.slots, columns,
                                      *range, writer, GoOn));
    range->first += columns.rows();
    return absl::OkStatus();
  }

  const BundleReader& bundle_;
  const StoredTables stored_;
  const std::string prefix_;
  FileSystem* const file_system_;
  std::vector<MergedTable> tables_;
  std::set<std::string, std::less<>> columns_;
};

}  // namespace

absl::Status MergeChain(const BundleReader& bundle, const std::string& prefix,
                        FileSystem* file_system) {
  ASSIGN_OR_RETURN(StoredTables stored, StoredTables::Open(&bundle));
  return Merger(bundle, std::move(stored), prefix, file_system).Run();
}

}  // namespace keelson
