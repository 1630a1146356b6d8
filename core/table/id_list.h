// Lists of ids as bulk messages have them (v1::RowSection says the format). Pure functions;
// thread-safe.
#ifndef KEELSON_CORE_TABLE_ID_LIST_H_
#define KEELSON_CORE_TABLE_ID_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// The ids of one table in a run of partitions, in row order: by partition, then by id.
struct IdList {
  std::vector<uint32_t> counts;  // per partition of the run
  std::vector<uint64_t> ids;
};

// How a list is written in the fewest bytes; of codings that are equal the one that is read
// fastest.
struct IdListForm {
  IdCoding coding = IdCoding::kRaw64;
  size_t bytes = 0;  // counts and ids
};
// `counts` add up to ids.size().
IdListForm SmallestForm(absl::Span<const uint32_t> counts, absl::Span<const uint64_t> ids);

// Writes form.bytes bytes, where `form` is SmallestForm of the same list.
void EncodeIdList(const IdListForm& form, absl::Span<const uint32_t> counts,
                  absl::Span<const uint64_t> ids, uint8_t* to);

// Reads the list of a request's section of the table with that salt (TableSalt). Allocates at most
// 8 times bytes.size(). INVALID_ARGUMENT, with the partition, and what was expected and found:
// counts that do not add up to section.num_ids, a number that is cut off, beyond 64 bits or longer
// than it needs to be, bytes that are too few or too many, ids that do not ascend strictly within a
// partition or are of another one. The run must lie in those that exist.
absl::Status DecodeIdList(const RowSection& section, uint64_t salt, absl::string_view bytes,
                          IdList* list);

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ID_LIST_H_
