// Compares embedding tables of two snapshots row by row.
#ifndef KEELSON_CLI_TABLE_DIFF_H_
#define KEELSON_CLI_TABLE_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/checkpoint/stored_tables.h"

namespace keelson {

// A table of a snapshot.
struct TableIn {
  const StoredTables* stored = nullptr;
  const StoredTable* table = nullptr;
};

// What differs, in words: rows that one alone has, rows whose values, slots, step or updates
// differ, with the largest difference of a number and the ids of the first such rows; slots that
// one alone has, another dim, other initial values. Empty: nothing. Numbers are compared as
// DiffTensors does. Holds a partition of each in memory. Errors of StoredTables.
absl::StatusOr<std::string> DiffTables(const TableIn& a, const TableIn& b, double tolerance);

}  // namespace keelson

#endif  // KEELSON_CLI_TABLE_DIFF_H_
