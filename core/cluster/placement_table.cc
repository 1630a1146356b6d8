#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/cluster/placement.h"

namespace keelson {
namespace {

using Row = std::array<std::string, 6>;

std::string UpdateOf(const VariableSpec& variable) {
  return variable.trained() ? "optimizer" : absl::StrCat("average ", *variable.average_decay);
}

Row PartitionRow(const Placement& placement, size_t p) {
  const Partition& partition = placement.partition(p);
  const VariableSpec& variable = placement.VariableOf(p);
  return {variable.name,
          variable.shape.ToString(),
          absl::StrCat(partition.row_begin, "..", partition.row_end - 1),
          absl::StrCat(partition.shard),
          absl::StrCat(placement.PartitionElements(p) * static_cast<int64_t>(sizeof(float))),
          UpdateOf(variable)};
}

std::string FormatRows(const std::vector<Row>& rows) {
  std::array<int, 6> width = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      width[i] = std::max(width[i], static_cast<int>(row[i].size()));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    absl::StrAppendFormat(&text, "%-*s  %-*s  %*s  %*s  %*s  %s\n", width[0], row[0], width[1],
                          row[1], width[2], row[2], width[3], row[3], width[4], row[4], row[5]);
  }
  return text;
}

std::string BalanceLine(const Placement& placement) {
  std::vector<int64_t> bytes;
  int64_t total = 0;
  for (size_t shard = 0; shard < placement.num_shards(); ++shard) {
    bytes.push_back(placement.ShardBytes(shard));
    total += bytes.back();
  }
  const double mean = static_cast<double>(total) / static_cast<double>(placement.num_shards());
  const double max = static_cast<double>(*std::max_element(bytes.begin(), bytes.end()));
  return absl::StrFormat("bytes per shard: %s; max/mean %.3f\n", absl::StrJoin(bytes, " "),
                         mean == 0 ? 1.0 : max / mean);
}

// Empty without tables.
std::string TablesLine(const Placement& placement) {
  if (placement.tables().empty()) return "";
  std::vector<uint32_t> partitions;
  for (size_t shard = 0; shard < placement.num_shards(); ++shard) {
    partitions.push_back(placement.RowPartitionsOf(shard).count);
  }
  const auto name = [](std::string* out, const TableSpec& table) {
    absl::StrAppend(out, table.name, " (dim ", table.dim, ")");
  };
  return absl::StrCat("tables: ", absl::StrJoin(placement.tables(), ", ", name),
                      "; row partitions per shard: ", absl::StrJoin(partitions, " "), "\n");
}

}  // namespace

std::string Placement::ToTable() const {
  std::vector<Row> rows = {{"variable", "shape", "rows", "shard", "bytes", "update"}};
  for (size_t p = 0; p < partitions_.size(); ++p) {
    rows.push_back(PartitionRow(*this, p));
  }
  return absl::StrCat(FormatRows(rows), BalanceLine(*this), TablesLine(*this));
}

}  // namespace keelson
