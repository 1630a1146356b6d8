// What keelson_ckpt says of the embedding tables in a snapshot.
#ifndef KEELSON_CLI_CKPT_TABLES_H_
#define KEELSON_CLI_CKPT_TABLES_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cli/text_table.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

// Adds a line for each table: rows, dim, slots. Errors of StoredTables::Open.
absl::Status AddTables(const BundleReader& bundle, TextTable* facts);

// Reads all ids of all tables, and checks that they are what readers expect. Errors of
// StoredTables.
absl::Status CheckTables(const BundleReader& bundle);

// Prints a row: its values, slots and counters; the initial values where there is no such row. A
// row that has expired and was not swept yet is there: a snapshot does not say when rows expire.
// NOT_FOUND: the snapshot has no such table. Errors of ResolveSnapshot and StoredRows.
absl::Status ShowRow(const std::string& name, const std::string& table, uint64_t id,
                     std::ostream* out, ForeignPaths foreign = ForeignPaths::kRefused);

}  // namespace keelson

#endif  // KEELSON_CLI_CKPT_TABLES_H_
