// libFuzzer program for the sections of table rows in a bulk request, and for the lists of ids in
// them. An input's first byte chooses the call, the second how the bytes of the message, all
// others, are cut into fragments.

#include <string>
#include <vector>

#include "core/table/row_sections.h"
#include "core/table/row_testing.h"
#include "core/wire/row_codec.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

constexpr RowPartitionRun kHeld = {64, 128};

const std::vector<WireTable>& Tables() {
  static const auto* const tables =
      new std::vector<WireTable>{WireTable({"items", 3, {}}), WireTable({"users", 1, {}})};
  return *tables;
}

void CheckList(const WireTable& table, const ReceivedRows& rows) {
  const IdList& list = rows.list;
  Check(list.ids.size() == rows.section.num_ids, "there are as many ids as the section says");
  Check(list.counts.size() == rows.section.num_partitions, "there is a count for each partition");
  const RowPartitionRun run = {rows.section.first_partition, rows.section.num_partitions};
  const IdList sorted = ListOf(list.ids, table.salt, run);
  Check(sorted.ids == list.ids, "ids are in order, and of the run's partitions");
  Check(sorted.counts == list.counts, "counts are those of the partitions");
  std::string bytes;
  const RowSection smallest = SectionOf(rows.section.table, run, list, RowPurpose::kRead, &bytes);
  Check(bytes.size() <= rows.section.id_bytes, "the smallest coding is the smallest");
  IdList again;
  Check(DecodeIdList(smallest, table.salt, bytes, &again).ok() && again.ids == list.ids,
        "what was encoded can be decoded");
}

void TestMessage(BulkMethod method, bool reject_non_finite, const ByteRope& rope) {
  ByteCursor cursor(rope);
  BulkRequest request;
  if (!DecodeBulkRequest(&cursor, &request).ok()) return;
  const absl::StatusOr<uint64_t> bytes = CheckRowSections(method, request.rows, Tables(), kHeld);
  if (!bytes.ok() || *bytes > cursor.remaining()) return;
  cursor.Skip(cursor.remaining() - *bytes);
  const auto read = ReadRowSections(request.rows, Tables(), reject_non_finite, cursor);
  if (!read.ok()) return;
  for (const ReceivedRows& rows : *read) {
    const WireTable& table = Tables()[rows.section.table];
    CheckList(table, rows);
    if (rows.section.purpose == RowPurpose::kRead) continue;
    std::vector<float> gradients(rows.list.ids.size() * table.dim);
    ByteCursor from = rows.gradients;
    TakeRows(rows.section.format, &from, table.dim, absl::MakeSpan(gradients));
  }
}

std::string Seed(BulkMethod method, const std::vector<uint64_t>& ids, RowPartitionRun run) {
  BulkRequest request;
  std::string payload = "block";
  for (const RowPurpose purpose : {RowPurpose::kApply, RowPurpose::kRead}) {
    const bool apply = purpose == RowPurpose::kApply;
    if (method == (apply ? BulkMethod::kPull : BulkMethod::kPush)) continue;
    for (uint32_t t = 0; t < 2; ++t) {
      const IdList list = ListOf(ids, Tables()[t].salt, run);
      RowSection section = SectionOf(t, run, list, purpose, &payload);
      section.format = t == 0 ? WireFormat::kInt8 : WireFormat::kBfloat16;
      request.rows.push_back(section);
      if (!apply) continue;
      payload += std::string(list.ids.size() * RowBytes(section.format, Tables()[t].dim), '1');
    }
  }
  return std::string(1, static_cast<char>(method)) + '\3' +
         EncodeBulkRequest(request, payload.size()) + payload;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  const std::vector<uint64_t> few = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 300, uint64_t{1} << 31};
  const std::vector<uint64_t> large = {0, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 1,
                                       ~uint64_t{0} - 3};
  for (const BulkMethod method : {BulkMethod::kPull, BulkMethod::kPush, BulkMethod::kPushPull}) {
    for (const std::vector<uint64_t>& ids : {few, large}) {
      for (const RowPartitionRun run : {kHeld, RowPartitionRun{100, 20}}) {
        seeds.push_back(Seed(method, ids, run));
      }
    }
  }
  return seeds;
}

}  // namespace
}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  keelson::TestMessage(static_cast<keelson::BulkMethod>(data[0] % 3), (data[0] & 64) != 0,
                       keelson::Cut(bytes, data[1]));
  return 0;
}
