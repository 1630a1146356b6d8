#include "core/table/row_sections.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

absl::Status BadField(size_t section, absl::string_view field, absl::string_view expected,
                      absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("rows[", section, "].", field, ": expected ", expected, ", found ", found));
}

absl::string_view PurposeName(RowPurpose purpose) {
  return purpose == RowPurpose::kApply ? "APPLY" : "READ";
}

std::string RunText(uint32_t first, uint32_t count) {
  return absl::StrCat(count, " partitions from ", first, " on");
}

absl::Status CheckRun(size_t i, absl::Span<const RowSection> sections, RowPartitionRun held) {
  const RowSection& section = sections[i];
  const RowSection& first = sections[0];
  const std::string found = RunText(section.first_partition, section.num_partitions);
  const uint64_t end = uint64_t{section.first_partition} + section.num_partitions;
  if (section.num_partitions == 0 || section.first_partition < held.first ||
      end > uint64_t{held.first} + held.count) {
    return BadField(i, "first_partition, num_partitions",
                    absl::StrCat("a run within the shard's ", RunText(held.first, held.count)),
                    found);
  }
  if (section.first_partition == first.first_partition &&
      section.num_partitions == first.num_partitions) {
    return absl::OkStatus();
  }
  return BadField(i, "first_partition, num_partitions",
                  absl::StrCat("rows[0]'s ", RunText(first.first_partition, first.num_partitions)),
                  found);
}

absl::Status CheckPurpose(size_t i, BulkMethod method, RowPurpose purpose) {
  if (method == BulkMethod::kPushPull) return absl::OkStatus();
  const RowPurpose only = method == BulkMethod::kPull ? RowPurpose::kRead : RowPurpose::kApply;
  if (purpose == only) return absl::OkStatus();
  return BadField(i, "purpose", absl::StrCat(PurposeName(only), " in a ", BulkMethodName(method)),
                  PurposeName(purpose));
}

// APPLY before READ, then by table.
absl::Status CheckOrder(size_t i, absl::Span<const RowSection> sections) {
  if (i == 0) return absl::OkStatus();
  const RowSection& section = sections[i];
  const RowSection& before = sections[i - 1];
  if (section.purpose == before.purpose ? section.table > before.table
                                        : section.purpose == RowPurpose::kRead) {
    return absl::OkStatus();
  }
  return BadField(i, "purpose, table", "APPLY before READ, and tables in ascending order",
                  absl::StrCat(PurposeName(section.purpose), " ", section.table, " after ",
                               PurposeName(before.purpose), " ", before.table));
}

// The next `size` bytes, which the cursor has, in one piece: copied to `scratch` if necessary.
absl::string_view InOnePiece(ByteCursor* cursor, size_t size, std::string* scratch) {
  const ByteCursor begin = *cursor;
  const absl::Span<const uint8_t> piece = cursor->Next(size);
  if (piece.size() == size) return {reinterpret_cast<const char*>(piece.data()), size};
  *cursor = begin;
  scratch->resize(size);
  cursor->Read(scratch->data(), size);
  return *scratch;
}

absl::Status InSection(size_t i, const WireTable& table, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(), absl::StrCat("rows[", i, "], table \"", table.name, "\": ", status.message()));
}

absl::Status ReadSection(const RowSection& section, const WireTable& table, bool reject_non_finite,
                         ByteCursor* cursor, std::string* scratch, ReceivedRows* rows) {
  RETURN_IF_ERROR(DecodeIdList(section, table.salt, InOnePiece(cursor, section.id_bytes, scratch),
                               &rows->list));
  rows->gradients = *cursor;
  if (section.purpose == RowPurpose::kRead) return absl::OkStatus();
  if (!reject_non_finite) {
    cursor->Skip(section.num_ids * RowBytes(section.format, table.dim));
    return absl::OkStatus();
  }
  if (TakeFiniteRows(section.format, cursor, section.num_ids, table.dim)) return absl::OkStatus();
  return absl::InvalidArgumentError("gradients: expected finite elements, found one that is not");
}

}  // namespace

uint64_t RequestRowBytes(const RowSection& section, int64_t dim) {
  if (section.purpose == RowPurpose::kRead) return section.id_bytes;
  return section.id_bytes + section.num_ids * uint64_t{RowBytes(section.format, dim)};
}

uint64_t AnswerRowBytes(const RowSection& section, int64_t dim) {
  return (uint64_t{section.num_ids} + 7) / 8 +
         section.num_rows * uint64_t{RowBytes(section.format, dim)};
}

absl::StatusOr<uint64_t> CheckRowSections(BulkMethod method, absl::Span<const RowSection> sections,
                                          absl::Span<const WireTable> tables,
                                          RowPartitionRun held) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const RowSection& section = sections[i];
    if (section.table >= tables.size()) {
      return BadField(i, "table", absl::StrCat("< ", tables.size()), absl::StrCat(section.table));
    }
    if (!IsRowFormat(section.format)) {
      return BadField(i, "format", "a format of rows", WireFormatName(section.format));
    }
    RETURN_IF_ERROR(CheckRun(i, sections, held));
    RETURN_IF_ERROR(CheckPurpose(i, method, section.purpose));
    RETURN_IF_ERROR(CheckOrder(i, sections));
    bytes += RequestRowBytes(section, tables[section.table].dim);
  }
  return bytes;
}

absl::StatusOr<std::vector<ReceivedRows>> ReadRowSections(absl::Span<const RowSection> sections,
                                                          absl::Span<const WireTable> tables,
                                                          bool reject_non_finite,
                                                          ByteCursor cursor) {
  std::vector<ReceivedRows> received;
  std::string scratch;
  for (size_t i = 0; i < sections.size(); ++i) {
    const WireTable& table = tables[sections[i].table];
    ReceivedRows& rows = received.emplace_back(ReceivedRows{sections[i], {}, cursor});
    RETURN_IF_ERROR(InSection(
        i, table, ReadSection(sections[i], table, reject_non_finite, &cursor, &scratch, &rows)));
  }
  return received;
}

}  // namespace keelson
