// Ids and sections of rows for tests.
#ifndef KEELSON_CORE_TABLE_ROW_TESTING_H_
#define KEELSON_CORE_TABLE_ROW_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/table/id_list.h"
#include "core/table/row_id.h"

namespace keelson {

// The list of those of `ids` whose partitions lie in `run`, in row order.
IdList ListOf(const std::vector<uint64_t>& ids, uint64_t salt, RowPartitionRun run);

// A section of that list, and its bytes appended to `payload`. Without rows.
RowSection SectionOf(uint32_t table, RowPartitionRun run, const IdList& list, RowPurpose purpose,
                     std::string* payload);

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_TESTING_H_
