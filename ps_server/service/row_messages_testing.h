// Messages about tables' rows, for tests.
#ifndef KEELSON_PS_SERVER_SERVICE_ROW_MESSAGES_TESTING_H_
#define KEELSON_PS_SERVER_SERVICE_ROW_MESSAGES_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/cluster/placement.h"
#include "core/wire/wire_format.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {

// Two tables: "items" with 3 numbers a row, uniform in +- 0.5, and "users" with 1, zeros.
std::vector<TableSpec> TestTables();
// Of TestVariables and TestTables.
Placement TestTablePlacement(size_t num_shards);

using RowsById = std::map<uint64_t, std::vector<float>>;

// What a message has of one table: gradients, or ids with rows of any numbers that are asked for.
struct MessageRows {
  uint32_t table = 0;
  RowsById rows;
  WireFormat format = WireFormat::kFloat32;
};

// The ids, each with no numbers.
RowsById Ids(const std::vector<uint64_t>& ids);

// Adds sections of all of the shard's partitions to a request: the gradients and ids that belong
// there.
void AddRows(const Placement& placement, size_t shard, const std::vector<MessageRows>& apply,
             const std::vector<MessageRows>& read, TestRequest* request);
// A message for rows alone.
TestRequest RowPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                      uint64_t sequence, const std::vector<MessageRows>& apply,
                      const std::vector<MessageRows>& read = {});
TestRequest RowPullOf(const Placement& placement, size_t shard,
                      const std::vector<MessageRows>& read);

// The rows of an answer to `read`, by table, that exist. The sections must be the answer's whole
// payload from `from` on.
std::vector<RowsById> RowsOf(const Placement& placement, size_t shard,
                             const std::vector<MessageRows>& read, const TestResponse& response,
                             size_t from = 0);

// The initial values of a row.
std::vector<float> InitialRow(const TableSpec& table, uint64_t id);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_ROW_MESSAGES_TESTING_H_
