// A table of dim 1 as text, such as the weights of a logistic regression: a line "ID:VALUE" per
// row, as libsvm writes features, by ascending ids.
#ifndef KEELSON_CLI_TABLE_TEXT_H_
#define KEELSON_CLI_TABLE_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/stored_tables.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

// Writes the table, which holds all its ids and values in memory meanwhile. Values have as many
// digits as it takes to read the same bits. The file appears complete or not at all.
// INVALID_ARGUMENT: the table has another dim. Errors of StoredTables and core/base/file_system.h.
absl::Status WriteTableText(const std::string& path, const StoredTables& stored,
                            const StoredTable& table);

// The tensors "<table>/keys" and "<table>/values" of such a file, in whichever order its lines are.
// Empty lines are skipped. INVALID_ARGUMENT, with the line: it is no such line. Errors of ReadFile.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTableText(const std::string& path,
                                                            const std::string& table);

// Whether files of this name are taken for such: "….txt".
bool IsTableText(absl::string_view path);

}  // namespace keelson

#endif  // KEELSON_CLI_TABLE_TEXT_H_
