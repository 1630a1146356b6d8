// Executes the parts of bulk calls that are about tables' rows.
#ifndef KEELSON_PS_SERVER_SERVICE_ROW_CALLS_H_
#define KEELSON_PS_SERVER_SERVICE_ROW_CALLS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/table/row_sections.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "ps_server/units/table_store.h"
#include "ps_server/units/value_payload.h"

namespace keelson {

// The sections of a message, which have been checked.
struct RowSections {
  std::vector<ReceivedRows> apply;
  std::vector<ReceivedRows> read;
};

// Reads the sections of the request, whose bytes are all that is left at `payload`. `store` may be
// null: there are no tables. INVALID_ARGUMENT: CheckRowSections', ReadRowSections', a payload of
// another size, or sections without tables.
absl::StatusOr<RowSections> ReadSections(const TableStore* store, BulkMethod method,
                                         const BulkRequest& request, bool reject_non_finite,
                                         ByteCursor payload);

// Call the next two in a ShardStore::PushScope, and only if there is something to apply. The
// cursors of `sections` are moved.

// Applies the gradients; partitions that have applied this push already are counted in
// `duplicate_blocks`. Returns whether the run's last partition has applied it here.
bool ApplyRows(TableStore* store, const PushIdentity& push, int64_t step, RowSections* sections,
               BulkResponse* response);

// Adds the gradients to their round's sums. FAILED_PRECONDITION: a newer round or attempt has
// begun.
absl::Status StageRows(TableStore* store, const BulkRequest& request, RowSections* sections,
                       BulkResponse* response);

// Adds the rows that are asked for to the answer.
void AnswerRows(const TableStore& store, const RowSections& sections, BulkResponse* response,
                ValuePayload* values);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_ROW_CALLS_H_
