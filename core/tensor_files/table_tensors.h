// Which tensors of a snapshot are columns of embedding tables.
#ifndef KEELSON_CORE_TENSOR_FILES_TABLE_TENSORS_H_
#define KEELSON_CORE_TENSOR_FILES_TABLE_TENSORS_H_

#include <set>
#include <string>

#include "core/checkpoint/stored_tables.h"

namespace keelson {

// The names that the columns of the table, or of a table's ghosts, have; also of such as are not
// there.
std::set<std::string> TableTensorNames(const StoredTables& stored, const StoredTable& table);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_TABLE_TENSORS_H_
