// The sections of table rows in a bulk request, read and checked as a whole (v1::RowSection says
// the format and the rules).
#ifndef KEELSON_CORE_TABLE_ROW_SECTIONS_H_
#define KEELSON_CORE_TABLE_ROW_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/table/id_list.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// What messages have to know of a table.
struct WireTable {
  explicit WireTable(const TableSpec& spec)
      : name(spec.name), salt(TableSalt(spec.name)), dim(spec.dim) {}

  std::string name;
  uint64_t salt;
  int64_t dim;
};

// A section with its ids and, with RowPurpose::kApply, where its rows of gradients begin.
struct ReceivedRows {
  RowSection section;
  IdList list;
  ByteCursor gradients;  // at the first of as many rows as ids; see TakeRows
};

// The bytes in the payload of a request's section, or of an answer's. No overflow.
uint64_t RequestRowBytes(const RowSection& section, int64_t dim);
uint64_t AnswerRowBytes(const RowSection& section, int64_t dim);

// The bytes of all of a request's sections in its payload, which they end. `held`: the shard's
// partitions. INVALID_ARGUMENT, with the section and the field: a rule for the numbers of sections
// is broken; see v1::RowSection.
absl::StatusOr<uint64_t> CheckRowSections(BulkMethod method, absl::Span<const RowSection> sections,
                                          absl::Span<const WireTable> tables, RowPartitionRun held);

// Reads sections that CheckRowSections has approved. `cursor` is at the first one's bytes, of a
// rope that outlives the result, and has all of them. INVALID_ARGUMENT, with the section:
// DecodeIdList's errors; with `reject_non_finite`, a gradient that is not finite.
absl::StatusOr<std::vector<ReceivedRows>> ReadRowSections(absl::Span<const RowSection> sections,
                                                          absl::Span<const WireTable> tables,
                                                          bool reject_non_finite,
                                                          ByteCursor cursor);

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_SECTIONS_H_
