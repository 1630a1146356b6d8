#include "cli/ckpt_tables.h"

#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "cli/element.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/stored_rows.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "core/optim/row_optimizer.h"
#include "core/table/row_id.h"
#include "core/tensor_files/snapshot_name.h"

namespace keelson {
namespace {

std::string FloatsText(absl::Span<const float> floats) {
  return absl::StrJoin(floats, " ", [](std::string* out, const float& value) {
    absl::StrAppend(out, ElementText(BundleDtype::kFloat32, reinterpret_cast<const char*>(&value)));
  });
}

// Of a delta.
std::string ChangesText(const StoredTables& stored, const StoredTable& table) {
  if (stored.base_name() == nullptr) return "";
  return absl::StrCat(", changed: ", table.total_rows, ", erased: ", table.total_erased);
}

}  // namespace

absl::Status AddTables(const BundleReader& bundle, TextTable* facts) {
  ASSIGN_OR_RETURN(const StoredTables stored, StoredTables::Open(&bundle));
  for (const StoredTable& table : stored.tables()) {
    std::vector<std::string> slots;
    for (const TableSlot& slot : stored.SlotsOf(table)) {
      slots.push_back(absl::StrCat(slot.name, " [", slot.floats, "]"));
    }
    facts->AddRow({absl::StrCat("table ", absl::CHexEscape(table.spec.name)),
                   absl::StrCat("rows: ", table.AllRows(), ", dim ", table.spec.dim,
                                ", slots: ", slots.empty() ? "none" : absl::StrJoin(slots, ", "),
                                ChangesText(stored, table))});
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const BundleReader& bundle) {
  ASSIGN_OR_RETURN(const StoredTables stored, StoredTables::Open(&bundle));
  for (const StoredTable& table : stored.tables()) {
    std::vector<std::string> missing;
    RETURN_IF_ERROR(stored.CheckColumns(table, {}, &missing));
    TableColumns columns;
    for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
      RETURN_IF_ERROR(stored.Read(table, {}, partition, &columns));
    }
  }
  return absl::OkStatus();
}

absl::Status ShowRow(const std::string& name, const std::string& table_name, uint64_t id,
                     std::ostream* out, ForeignPaths foreign) {
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(name, foreign));
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredRows> stored, StoredRows::Open(prefix));
  const StoredTable* const table = stored->tables().Find(table_name);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat(prefix, ": no table '", table_name, "'"));
  }
  const std::vector<TableSlot> slots = stored->tables().SlotsOf(*table);
  RowMatrix matrix;
  RETURN_IF_ERROR(stored->Read(*table, {id}, {slots, /*counters=*/true}, &matrix));
  absl::Span<const float> floats = matrix.rows;
  const auto take = [&floats](int64_t count) {
    const auto part = floats.subspan(0, static_cast<size_t>(count));
    floats.remove_prefix(part.size());
    return part;
  };
  TextTable text;
  if (!matrix.present[0]) {
    text.AddRow({"row", "none"});
    text.AddRow({"initial values", FloatsText(take(table->spec.dim))});
  } else {
    text.AddRow({"values", FloatsText(take(table->spec.dim))});
    for (const TableSlot& slot : slots) text.AddRow({slot.name, FloatsText(take(slot.floats))});
    const uint32_t missed = MissedSteps(matrix.last_steps[0], stored->tables().steps_done());
    text.AddRow(
        {"last step", absl::StrCat(matrix.last_steps[0], ", before ", missed, " other steps")});
    text.AddRow({"updates", absl::StrCat(matrix.updates[0])});
  }
  *out << text.ToString();
  return absl::OkStatus();
}

}  // namespace keelson
