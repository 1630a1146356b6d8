// Imports embedding tables into a snapshot, from snapshots and from tensors of ids and rows.
#ifndef KEELSON_CLI_IMPORT_TABLES_H_
#define KEELSON_CLI_IMPORT_TABLES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/stored_tables.h"
#include "core/tensor/table_spec.h"
#include "core/tensor_files/tensor_source.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

struct ImportedTable {
  TableSpec spec;
  uint64_t seed = 0;  // of the initial values
  // The rows' origin: a snapshot's table, or tensors; neither: the table starts without rows.
  const StoredTables* stored = nullptr;
  const StoredTable* table = nullptr;
  TensorInfo keys;      // int64 [n]: the ids; a negative number k stands for 2^64 + k
  TensorInfo values;    // numbers [n, dim]
  TensorInfo versions;  // integers [n]: the step of each row's last update; no name: none

  bool empty() const { return stored == nullptr && keys.name.empty(); }
};

struct TableImportPlan {
  std::vector<ImportedTable> tables;
  // Tensors of the source that belong to the tables' origins, used or not.
  std::set<std::string> tensors;
  // `renames` without those of tables.
  std::vector<std::string> renames;
};

// Finds the rows of a model's tables in the source: in a table of a snapshot of that name; in
// tensors "<table>/keys" and "<table>/values", as `export` writes them; or in "<table>-keys",
// "<table>-values" and, if there is, "<table>-versions", as DeepRec writes embedding variables
// (DeepRec's docs/docs_en/Embedding-Variable-Export-Format.md); its "<table>-freqs" are left out.
// A rename "old=new" gives the table `new` the rows of `old`. INVALID_ARGUMENT: tables that are
// missing (unless `initialize_missing`), are in parts ("<table>/part_0-keys"), or whose tensors
// have other shapes or types; all are named. Errors of StoredTables.
absl::StatusOr<TableImportPlan> PlanTables(const std::vector<TableSpec>& model, uint64_t seed,
                                           bool initialize_missing, TensorSource* source,
                                           const std::vector<std::string>& renames);
// All tables of a snapshot, as they are. INVALID_ARGUMENT: tensors of a source that is none look
// like a table's, whose initial values nobody says.
absl::StatusOr<TableImportPlan> PlanTablesOfSource(TensorSource* source,
                                                   const std::vector<std::string>& renames);

// Writes the rows, with values alone: they have had no update, and their last step is the one
// before `step`, or earlier where the origin says so. Adds to the state where they lie. Holds the
// table's ids and values in memory; of a snapshot's table that keeps its name, one partition.
// INVALID_ARGUMENT: an id twice. Errors of the source and the writer. `warnings`: as AddWarnings.
absl::Status WriteImportedTable(const ImportedTable& table, int64_t step, TensorSource* source,
                                BundleDataWriter* writer, v1::ShardState* state,
                                std::vector<std::string>* warnings);

}  // namespace keelson

#endif  // KEELSON_CLI_IMPORT_TABLES_H_
