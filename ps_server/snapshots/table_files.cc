#include "ps_server/snapshots/table_files.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/checkpoint/stored_tables.h"
#include "core/tensor/initializer_proto.h"

namespace keelson {

std::vector<TableSlot> SlotsOf(const ServedTable& table) {
  if (table.optimizer == nullptr) return {};
  return TableSlotsOf(table.optimizer->slots());
}

namespace {

// Copies rows to the columns, from row `to` on, where there is room for them. Column by column: the
// rows, which are few, stay in the caches.
void CopyRows(const RowLayout& layout, absl::Span<const RowHeader* const> rows, size_t to,
              TableColumns* columns) {
  const auto copy_floats = [&](int64_t offset, int64_t floats, std::vector<float>* column) {
    const auto width = static_cast<size_t>(floats);
    if (width == 0) return;  // of ghosts
    float* out = column->data() + to * width;
    for (const RowHeader* const row : rows) {
      std::memcpy(out, row->values() + offset, width * sizeof(float));
      out += width;
    }
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    columns->ids[to + i] = rows[i]->id;
    columns->last_steps[to + i] = rows[i]->last_step;
    columns->updates[to + i] = rows[i]->updates;
  }
  copy_floats(0, layout.dim(), &columns->values);
  for (size_t i = 0; i < columns->slots.size(); ++i) {
    copy_floats(layout.SlotOffset(i), layout.slots()[i].floats, &columns->slots[i]);
  }
}

// The rows of a table in a partition, as they were at the cut.
absl::Status ReadColumns(const TableStore& store, const TableCut& cut, uint32_t partition, size_t t,
                         absl::Span<const TableSlot> slots, TableCut::Part part,
                         absl::FunctionRef<absl::Status()> go_on, TableColumns* columns) {
  const ServedTable& table = store.tables_and_ghosts()[t];
  const RowLayout& layout = table.layout;
  const auto expected = static_cast<size_t>(cut.Rows(partition, t, part));
  columns->Resize(expected, static_cast<size_t>(layout.dim()), slots);
  size_t found = 0;
  RETURN_IF_ERROR(cut.Read(
      partition, t,
      [&](const RowTable&, absl::Span<const RowHeader* const> rows) {
        if (found + rows.size() <= expected) CopyRows(layout, rows, found, columns);
        found = std::min(found + rows.size(), expected + 1);
      },
      go_on, part));
  if (found == expected) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("table ", table.spec.name, ", partition ", partition,
                                          ": expected ", expected, " rows in the cut, found ",
                                          found > expected ? "more" : absl::StrCat(found)));
}

// A table to restore.
struct Source {
  const StoredTable* table = nullptr;  // null: the bundle has none
  std::vector<TableSlot> slots;
};

absl::StatusOr<std::vector<Source>> FindSources(const StoredTables& stored,
                                                const TableStore& store) {
  std::vector<Source> sources;
  std::vector<std::string> missing;
  for (const ServedTable& table : store.tables_and_ghosts()) {
    Source& source = sources.emplace_back();
    source.slots = SlotsOf(table);
    source.table = stored.Find(table.spec.name);
    if (source.table == nullptr) {
      if (table.optimizer == nullptr) continue;  // ids are counted from now on
      LogWarning(stored.bundle().prefix(), ": has no table ", table.spec.name,
                 "; it starts without rows");
      continue;
    }
    RETURN_IF_ERROR(stored.CheckSame(*source.table, table.spec, store.seed()));
    RETURN_IF_ERROR(stored.CheckColumns(*source.table, source.slots, &missing));
  }
  if (!missing.empty()) {
    LogWarning(stored.bundle().prefix(), ": lacks ", missing.size(),
               " of the slots of tables' rows (first: ", missing.front(),
               "); they start with their initial values");
  }
  return sources;
}

absl::Status RestorePartition(const StoredTables& stored, const std::vector<Source>& sources,
                              uint32_t partition, TableColumns* columns, TableStore* store) {
  for (size_t t = 0; t < sources.size(); ++t) {
    if (sources[t].table == nullptr) continue;
    RETURN_IF_ERROR(stored.Read(*sources[t].table, sources[t].slots, partition, columns));
    RETURN_IF_ERROR(AddRows(t, partition, *columns, store));
  }
  for (const v1::ShardState::WorkerSequence& applied : stored.AppliedBy(partition)) {
    store->Partition(partition)->RestoreApplied(applied.incarnation(), applied.sequence());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckColumnNames(const TableStore& store, absl::Span<const VariableSpec> variables) {
  std::map<std::string, absl::string_view> tables;  // by the names of their columns
  for (const ServedTable& table : store.tables_and_ghosts()) {
    const std::string& name = table.spec.name;
    for (const auto& column :
         {KeysTensorName(name), ValuesTensorName(name), LastStepTensorName(name),
          UpdatesTensorName(name), ErasedTensorName(name)}) {
      tables[column] = name;
    }
    for (const TableSlot& slot : SlotsOf(table)) tables[SlotTensorName(name, slot.name)] = name;
  }
  for (const VariableSpec& variable : variables) {
    const auto column = tables.find(variable.name);
    if (column == tables.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("placement.variables: expected names that no column of table \"",
                     column->second, "\" has in snapshots, found \"", variable.name, "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckTablePlaces(const TableStore& store, const TableCut& cut,
                              const TablePlaces& places) {
  const std::vector<ServedTable>& tables = store.tables_and_ghosts();
  const bool delta = places.base.has_value();
  if (places.rows.size() != tables.size() || (delta && places.erased.size() != tables.size())) {
    return absl::InvalidArgumentError(absl::StrCat("tables: expected one for each of the ",
                                                   tables.size(), " tables, found ",
                                                   places.rows.size()));
  }
  if (delta && !cut.has_changes()) {
    return absl::InvalidArgumentError(
        "base: expected none, since what has changed is not known, found one");
  }
  const auto check = [&](size_t t, const TableRowRange& place, int64_t count,
                         absl::string_view what) {
    const auto [first, total] = place;
    if (first >= 0 && first <= total && count <= total - first) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", tables[t].spec.name, ": expected place for ", count, what, first, " of ", total));
  };
  for (size_t t = 0; t < tables.size(); ++t) {
    RETURN_IF_ERROR(check(t, places.rows[t], cut.Rows(t, places.part()), " rows, found row "));
    if (!delta) continue;
    RETURN_IF_ERROR(check(t, places.erased[t], cut.NumErased(t), " erased ids, found id "));
  }
  return absl::OkStatus();
}

absl::Status WriteTables(const TableStore& store, const TableCut& cut, const TablePlaces& places,
                         BundleDataWriter* writer, absl::FunctionRef<absl::Status()> go_on) {
  RETURN_IF_ERROR(CheckTablePlaces(store, cut, places));
  const std::vector<ServedTable>& tables = store.tables_and_ghosts();
  TablePlaces next = places;
  const RowPartitionRun run = store.partitions();
  TableColumns columns;
  for (uint32_t p = run.first; p < run.first + run.count; ++p) {
    // The first partition says that a tensor has no rows at all.
    const auto empty = [p](int64_t rows, const TableRowRange& range) {
      return rows == 0 && (range.total > 0 || p > 0);
    };
    for (size_t t = 0; t < tables.size(); ++t) {
      const TableSpec& spec = tables[t].spec;
      if (!empty(cut.Rows(p, t, next.part()), next.rows[t])) {
        const std::vector<TableSlot> slots = SlotsOf(tables[t]);
        RETURN_IF_ERROR(ReadColumns(store, cut, p, t, slots, next.part(), go_on, &columns));
        RETURN_IF_ERROR(
            WriteTableColumns(spec.name, spec.dim, slots, columns, next.rows[t], writer, go_on));
        next.rows[t].first += columns.rows();
      }
      if (next.base.has_value() && !empty(cut.NumErased(p, t), next.erased[t])) {
        const std::vector<uint64_t> erased = cut.Erased(p, t);
        RETURN_IF_ERROR(WriteErasedIds(spec.name, erased, next.erased[t], writer, go_on));
        next.erased[t].first += static_cast<int64_t>(erased.size());
      }
    }
    cut.EndPartition(p);
  }
  return absl::OkStatus();
}

void AddTables(const TableStore& store, const TableCut& cut, const TablePlaces& places,
               v1::ShardState* state) {
  const RowPartitionRun run = store.partitions();
  state->set_first_row_partition(run.first);
  state->set_num_row_partitions(run.count);
  state->set_steps_done(cut.steps_done());
  if (places.base.has_value()) *state->mutable_base() = *places.base;
  for (size_t t = 0; t < places.rows.size(); ++t) {
    const TableSpec& spec = store.tables_and_ghosts()[t].spec;
    const bool ghosts = t >= store.tables().size();
    v1::ShardState::Table* const table = ghosts ? state->add_ghosts() : state->add_tables();
    table->set_name(spec.name);
    table->set_dim(spec.dim);
    *table->mutable_initializer() = InitializerToProto(spec.initializer);
    table->set_seed(store.seed());
    table->set_first_row(places.rows[t].first);
    table->set_total_rows(places.rows[t].total);
    for (uint32_t p = run.first; p < run.first + run.count; ++p) {
      table->add_rows(cut.Rows(p, t, places.part()));
    }
    if (!places.base.has_value()) continue;
    table->set_first_erased(places.erased[t].first);
    table->set_total_erased(places.erased[t].total);
    for (uint32_t p = run.first; p < run.first + run.count; ++p) {
      table->add_all_rows(cut.Rows(p, t));
      table->add_erased(cut.NumErased(p, t));
    }
  }
}

absl::Status RestoreTables(const BundleReader& bundle, int threads, TableStore* store) {
  const RowPartitionRun run = store->partitions();
  if (run.count == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const StoredTables stored, StoredTables::Open(&bundle, run));
  ASSIGN_OR_RETURN(const std::vector<Source> sources, FindSources(stored, *store));
  store->RestoreStepsDone(stored.steps_done());
  std::vector<absl::Status> statuses(run.count);
  ThreadPool pool(threads - 1);
  std::atomic<uint32_t> next{0};
  pool.RunAll(static_cast<size_t>(threads), [&](size_t) {
    TableColumns columns;
    for (uint32_t i = next++; i < run.count; i = next++) {
      statuses[i] = RestorePartition(stored, sources, run.first + i, &columns, store);
    }
  });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status AddRows(size_t table, uint32_t partition, const TableColumns& columns,
                     TableStore* store) {
  const ServedTable& served = store->tables_and_ghosts()[table];
  const RowLayout& layout = served.layout;
  return store->Partition(partition)->AddRows(table, columns.ids, [&](size_t i, RowHeader* row) {
    constexpr uint32_t kMost = std::numeric_limits<uint16_t>::max();
    row->last_step = columns.last_steps[i];
    row->updates = static_cast<uint16_t>(std::min(columns.updates[i], kMost));
    float* const values = row->values();
    const auto dim = static_cast<size_t>(layout.dim());
    std::copy_n(columns.values.data() + i * dim, dim, values);
    for (size_t s = 0; s < columns.slots.size(); ++s) {
      const auto floats = static_cast<size_t>(layout.slots()[s].floats);
      std::copy_n(columns.slots[s].data() + i * floats, floats, values + layout.SlotOffset(s));
    }
  });
}

}  // namespace keelson
