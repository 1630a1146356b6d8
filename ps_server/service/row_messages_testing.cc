#include "ps_server/service/row_messages_testing.h"

#include <utility>

#include "core/table/id_list.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"
#include "core/table/row_testing.h"
#include "core/wire/row_codec.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

IdList IdsOf(const Placement& placement, size_t shard, const MessageRows& rows) {
  std::vector<uint64_t> ids;
  for (const auto& [id, row] : rows.rows) ids.push_back(id);
  return ListOf(ids, TableSalt(placement.tables()[rows.table].name),
                placement.RowPartitionsOf(shard));
}

void AddSection(const Placement& placement, size_t shard, RowPurpose purpose,
                const MessageRows& rows, TestRequest* request) {
  const IdList list = IdsOf(placement, shard, rows);
  RowSection section =
      SectionOf(rows.table, placement.RowPartitionsOf(shard), list, purpose, &request->payload);
  section.format = rows.format;
  request->header.rows.push_back(section);
  if (purpose == RowPurpose::kRead) return;
  const int64_t dim = placement.tables()[rows.table].dim;
  for (const uint64_t id : list.ids) {
    std::string row(RowBytes(rows.format, dim), '\0');
    EncodeRows(rows.format, absl::MakeConstSpan(rows.rows.at(id)), dim,
               reinterpret_cast<uint8_t*>(row.data()));
    request->payload += row;
  }
}

TestRequest MemberRequest(const Placement& placement, size_t shard, uint64_t incarnation) {
  TestRequest request = PullOf(placement, shard);
  request.header.ranges.clear();
  request.header.incarnation = incarnation;
  return request;
}

}  // namespace

std::vector<TableSpec> TestTables() {
  return {{"items", 3, {Initializer::Kind::kUniform, -0.5f, 0.5f}}, {"users", 1, {}}};
}

Placement TestTablePlacement(size_t num_shards) {
  return Placement::Compute(TestVariables(), num_shards, /*block_elements=*/1000, TestTables());
}

RowsById Ids(const std::vector<uint64_t>& ids) {
  RowsById rows;
  for (const uint64_t id : ids) rows[id] = {};
  return rows;
}

void AddRows(const Placement& placement, size_t shard, const std::vector<MessageRows>& apply,
             const std::vector<MessageRows>& read, TestRequest* request) {
  for (const MessageRows& rows : apply) {
    AddSection(placement, shard, RowPurpose::kApply, rows, request);
  }
  for (const MessageRows& rows : read)
    AddSection(placement, shard, RowPurpose::kRead, rows, request);
}

TestRequest RowPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                      uint64_t sequence, const std::vector<MessageRows>& apply,
                      const std::vector<MessageRows>& read) {
  TestRequest request = MemberRequest(placement, shard, incarnation);
  request.header.sequence = sequence;
  request.header.last_part = true;
  AddRows(placement, shard, apply, read, &request);
  return request;
}

TestRequest RowPullOf(const Placement& placement, size_t shard,
                      const std::vector<MessageRows>& read) {
  TestRequest request = MemberRequest(placement, shard, 1);
  AddRows(placement, shard, {}, read, &request);
  return request;
}

std::vector<RowsById> RowsOf(const Placement& placement, size_t shard,
                             const std::vector<MessageRows>& read, const TestResponse& response,
                             size_t from) {
  std::vector<RowsById> tables;
  EXPECT_EQ(response.header.rows.size(), read.size());
  const auto* const payload = reinterpret_cast<const uint8_t*>(response.payload.data());
  for (size_t i = 0; i < read.size(); ++i) {
    const RowSection& section = response.header.rows[i];
    const IdList list = IdsOf(placement, shard, read[i]);
    EXPECT_EQ(section.table, read[i].table);
    EXPECT_EQ(section.num_ids, list.ids.size());
    const int64_t dim = placement.tables()[read[i].table].dim;
    const uint8_t* const presence = payload + from;
    from += (list.ids.size() + 7) / 8;
    RowsById& rows = tables.emplace_back();
    for (size_t k = 0; k < list.ids.size(); ++k) {
      if ((presence[k / 8] >> (k % 8) & 1) == 0) continue;
      std::vector<float> row(dim);
      DecodeRows(section.format, payload + from, dim, absl::MakeSpan(row));
      from += RowBytes(section.format, dim);
      rows[list.ids[k]] = std::move(row);
    }
    EXPECT_EQ(section.num_rows, rows.size());
  }
  EXPECT_EQ(from, response.payload.size());
  return tables;
}

std::vector<float> InitialRow(const TableSpec& table, uint64_t id) {
  std::vector<float> row(table.dim);
  InitialRows(table.initializer, kTestSeed, TableSalt(table.name)).Fill(id, absl::MakeSpan(row));
  return row;
}

}  // namespace keelson
