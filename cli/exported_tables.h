// A snapshot's embedding tables as tensors of all their rows, for export.
#ifndef KEELSON_CLI_EXPORTED_TABLES_H_
#define KEELSON_CLI_EXPORTED_TABLES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

// The tensors of a source, with those of its tables as its rows are, from whichever files: of each
// table "<table>/keys" int64 [n] and "<table>/values" float32 [n, dim], by partition, then by id;
// with slots also the optimizer's, "<table>/last_step" and "<table>/updates" int32 [n]. The counts
// of ids without a row are left out.
class ExportedTables : public TensorSource {
 public:
  // Errors of StoredTables::Open and CheckColumns.
  static absl::StatusOr<std::unique_ptr<TensorSource>> Create(std::unique_ptr<TensorSource> source,
                                                              bool slots);

  std::vector<TensorInfo> List() const override;
  // Reads the rows' values and slots, whatever the column.
  absl::StatusOr<std::string> Read(absl::string_view name) override;
  absl::StatusOr<std::vector<std::string>> ReadStrings(absl::string_view name) override;
  // Those of the source, and the tables.
  absl::StatusOr<std::vector<TensorInfo>> Variables() override;

 private:
  struct Column {
    const StoredTable* table = nullptr;
    TensorInfo info;
    // The column's bytes of these rows; `slots` are those that were read.
    std::string (*bytes)(const TableColumns& columns) = nullptr;
    std::vector<TableSlot> slots = {};
  };

  ExportedTables(std::unique_ptr<TensorSource> source, const StoredTables* stored)
      : source_(std::move(source)), stored_(stored) {}

  absl::Status AddTable(const StoredTable& table, bool slots);

  const std::unique_ptr<TensorSource> source_;
  const StoredTables* const stored_;
  std::vector<TensorInfo> others_;  // no columns of tables
  std::map<std::string, Column, std::less<>> columns_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_EXPORTED_TABLES_H_
