#include "core/cluster/placement.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/cluster/task_proto.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

constexpr int64_t kElementBytes = sizeof(float);

absl::Status FieldError(absl::string_view field, absl::string_view expected, int64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("placement.", field, ": expected ", expected, ", found ", found));
}

absl::Status DuplicateVariable(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("placement.variables: expected unique names, found \"", name, "\" twice"));
}

absl::Status RowsNotCovered(absl::string_view name, int64_t expected, int64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("placement.partitions: expected the rows of \"", name,
                   "\" exactly once and in order, continuing at row ", expected, ", found ",
                   found == std::numeric_limits<int64_t>::max() ? "none" : absl::StrCat(found)));
}

absl::Status TwoOnOneShard(absl::string_view name, size_t shard) {
  return absl::InvalidArgumentError(
      absl::StrCat("placement.partitions: expected at most one partition of \"", name,
                   "\" per shard, found two on shard ", shard));
}

// Splits variables over shards. See Placement::Compute.
class Balancer {
 public:
  // Places those of the variables that `chosen` lists on shards [first_shard, first_shard +
  // num_shards).
  Balancer(const std::vector<VariableSpec>& variables, std::vector<size_t> chosen,
           size_t first_shard, size_t num_shards)
      : variables_(variables),
        chosen_(std::move(chosen)),
        first_shard_(first_shard),
        load_(num_shards, 0) {
    for (const size_t variable : chosen_) total_ += spec(variable).bytes();
  }

  std::vector<Partition> Run() {
    for (size_t variable : CoarsestFirst()) Place(variable);
    return std::move(partitions_);
  }

 private:
  const VariableSpec& spec(size_t variable) const { return variables_[variable]; }
  int64_t row_bytes(size_t variable) const {
    return spec(variable).shape.row_elements() * kElementBytes;
  }
  // Rounded up, so that the shards always have room for what is left.
  int64_t mean() const {
    const auto shards = static_cast<int64_t>(load_.size());
    return (total_ + shards - 1) / shards;
  }

  // Bytes of the largest part that stays on one shard.
  int64_t Grain(size_t variable) const {
    const bool whole = spec(variable).bytes() <= Placement::kMaxWholeBytes;
    return whole ? spec(variable).bytes() : row_bytes(variable);
  }

  // Variables that are hard to divide are placed first, so that finer parts can even out the
  // shards.
  std::vector<size_t> CoarsestFirst() const {
    std::vector<size_t> order = chosen_;
    std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return std::make_tuple(-Grain(a), -spec(a).bytes(), a) <
             std::make_tuple(-Grain(b), -spec(b).bytes(), b);
    });
    return order;
  }

  std::vector<size_t> LeastLoadedFirst() const {
    std::vector<size_t> order(load_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return load_[a] < load_[b]; });
    return order;
  }

  void Place(size_t variable) {
    const int64_t rows = spec(variable).shape.rows();
    int64_t row = 0;
    const std::vector<size_t> shards = LeastLoadedFirst();
    for (size_t i = 0; i < shards.size() && row < rows; ++i) {
      const bool last = i + 1 == shards.size();
      const int64_t take = last ? rows - row : RowsFor(variable, shards[i], rows - row);
      if (take > 0) Assign({variable, first_shard_ + shards[i], row, row + take});
      row += take;
    }
  }

  // The number of the remaining rows that the shard takes: all when they fit, else up to and
  // including the row that crosses the mean, so that the rest always fits on the remaining shards.
  int64_t RowsFor(size_t variable, size_t shard, int64_t remaining) const {
    const int64_t space = mean() - load_[shard];
    const int64_t slack = mean() / 64;
    const bool whole = spec(variable).bytes() <= Placement::kMaxWholeBytes;
    if (whole || remaining * row_bytes(variable) <= space + slack) return remaining;
    if (space <= 0) return 0;
    return std::min(remaining, (space + row_bytes(variable) - 1) / row_bytes(variable));
  }

  void Assign(const Partition& partition) {
    load_[partition.shard - first_shard_] +=
        (partition.row_end - partition.row_begin) * row_bytes(partition.variable);
    partitions_.push_back(partition);
  }

  const std::vector<VariableSpec>& variables_;
  const std::vector<size_t> chosen_;
  const size_t first_shard_;
  int64_t total_ = 0;
  std::vector<int64_t> load_;  // of shards from first_shard_ on
  std::vector<Partition> partitions_;
};

std::vector<Partition> PlaceIn(const ShardGroups& groups,
                               const std::vector<VariableSpec>& variables) {
  std::vector<size_t> on_servers, on_workers;
  for (size_t v = 0; v < variables.size(); ++v) {
    const bool workers =
        groups.workers > 0 && groups.on_workers != nullptr && groups.on_workers(variables[v].name);
    (workers || groups.servers == 0 ? on_workers : on_servers).push_back(v);
  }
  std::vector<Partition> partitions =
      Balancer(variables, std::move(on_servers), 0, groups.servers).Run();
  const std::vector<Partition> others =
      Balancer(variables, std::move(on_workers), groups.servers, groups.workers).Run();
  partitions.insert(partitions.end(), others.begin(), others.end());
  std::sort(partitions.begin(), partitions.end(), [](const Partition& a, const Partition& b) {
    return std::tie(a.variable, a.row_begin) < std::tie(b.variable, b.row_begin);
  });
  return partitions;
}

// Bounds of what is read; their products fit into 64 bits.
constexpr uint32_t kMaxShards = 1 << 16;
constexpr int kMaxVariables = 1 << 16;
constexpr int kMaxPartitions = 1 << 20;
constexpr int kMaxTables = 4096;
constexpr int64_t kMaxModelElements = int64_t{1} << 56;

absl::Status CheckNumbers(const v1::Placement& proto) {
  if (proto.num_shards() < 1 || proto.num_shards() > kMaxShards) {
    return FieldError("num_shards", "1..65536", proto.num_shards());
  }
  if (proto.block_elements() < 1) {
    return FieldError("block_elements", "> 0", proto.block_elements());
  }
  if (proto.variables_size() > kMaxVariables) {
    return FieldError("variables", absl::StrCat("at most ", kMaxVariables), proto.variables_size());
  }
  if (proto.partitions_size() > kMaxPartitions) {
    return FieldError("partitions", absl::StrCat("at most ", kMaxPartitions),
                      proto.partitions_size());
  }
  if (proto.tables_size() > kMaxTables) {
    return FieldError("tables", absl::StrCat("at most ", kMaxTables), proto.tables_size());
  }
  const uint32_t row_partitions = proto.tables_size() == 0 ? 0 : kRowPartitions;
  if (proto.row_partitions() != row_partitions) {
    return FieldError("row_partitions",
                      absl::StrCat(row_partitions, " with ", proto.tables_size(), " tables"),
                      proto.row_partitions());
  }
  const uint32_t most = proto.tables_size() == 0 ? 0 : proto.num_shards() - 1;
  if (proto.table_shards() <= most) return absl::OkStatus();
  return FieldError("table_shards",
                    absl::StrCat("at most ", most, " with ", proto.tables_size(), " tables and ",
                                 proto.num_shards(), " shards"),
                    proto.table_shards());
}

absl::StatusOr<std::vector<VariableSpec>> ReadVariables(const v1::Placement& proto) {
  std::vector<VariableSpec> variables;
  std::set<std::string> names;
  int64_t elements = 0;
  for (const v1::VariableSpec& entry : proto.variables()) {
    ASSIGN_OR_RETURN(VariableSpec spec, VariableSpecFromProto(entry));
    elements += spec.shape.num_elements();
    if (elements > kMaxModelElements) {
      return FieldError("variables", absl::StrCat("at most ", kMaxModelElements, " elements"),
                        elements);
    }
    if (!names.insert(spec.name).second) return DuplicateVariable(spec.name);
    variables.push_back(std::move(spec));
  }
  return variables;
}

absl::StatusOr<Partition> ReadPartition(const v1::Placement& proto, int p) {
  const v1::Partition& entry = proto.partitions(p);
  const std::string field = absl::StrCat("partitions[", p, "].");
  if (entry.variable() >= static_cast<uint32_t>(proto.variables_size())) {
    return FieldError(field + "variable", absl::StrCat("< ", proto.variables_size()),
                      entry.variable());
  }
  if (entry.shard() >= proto.num_shards()) {
    return FieldError(field + "shard", absl::StrCat("< ", proto.num_shards()), entry.shard());
  }
  if (entry.row_end() <= entry.row_begin()) {
    return FieldError(field + "row_end", absl::StrCat("> ", entry.row_begin()), entry.row_end());
  }
  return Partition{entry.variable(), entry.shard(), entry.row_begin(), entry.row_end()};
}

// `next` is the first of the partitions not yet consumed.
absl::Status CheckVariableCovered(const VariableSpec& spec, size_t variable,
                                  const std::vector<Partition>& partitions, size_t* next) {
  int64_t row = 0;
  std::set<size_t> shards;
  for (; *next < partitions.size() && partitions[*next].variable == variable; ++*next) {
    const Partition& partition = partitions[*next];
    if (partition.row_begin != row) return RowsNotCovered(spec.name, row, partition.row_begin);
    if (!shards.insert(partition.shard).second) return TwoOnOneShard(spec.name, partition.shard);
    row = partition.row_end;
  }
  if (row < spec.shape.rows()) {
    return RowsNotCovered(spec.name, row, std::numeric_limits<int64_t>::max());
  }
  if (row > spec.shape.rows()) return RowsNotCovered(spec.name, spec.shape.rows(), row);
  return absl::OkStatus();
}

absl::Status CheckCovered(const std::vector<VariableSpec>& variables,
                          const std::vector<Partition>& partitions) {
  size_t next = 0;
  for (size_t v = 0; v < variables.size(); ++v) {
    RETURN_IF_ERROR(CheckVariableCovered(variables[v], v, partitions, &next));
  }
  if (next == partitions.size()) return absl::OkStatus();
  return FieldError(absl::StrCat("partitions[", next, "].variable"), "ascending order",
                    partitions[next].variable);
}

// Tables are told by their names, as variables are: in files and in the configuration's patterns.
absl::Status CheckTableNames(const std::vector<VariableSpec>& variables,
                             const std::vector<TableSpec>& tables) {
  std::set<absl::string_view> names;
  for (const VariableSpec& variable : variables) names.insert(variable.name);
  for (size_t t = 0; t < tables.size(); ++t) {
    const std::string& name = tables[t].name;
    if (t > 0 && name <= tables[t - 1].name) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement.tables: expected unique names in ascending order, found \"", name,
                       "\" after \"", tables[t - 1].name, "\""));
    }
    if (names.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "placement.tables: expected names that no variable has, found \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

std::string SerializeDeterministically(const v1::Placement& proto) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  proto.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

Placement Placement::Compute(std::vector<VariableSpec> variables, size_t num_shards,
                             int64_t block_elements, std::vector<TableSpec> tables) {
  return ComputeIn({num_shards}, std::move(variables), block_elements, std::move(tables));
}

Placement Placement::ComputeIn(const ShardGroups& groups, std::vector<VariableSpec> variables,
                               int64_t block_elements, std::vector<TableSpec> tables) {
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(variables.begin(), variables.end(), by_name);
  std::sort(tables.begin(), tables.end(), by_name);
  Placement placement;
  placement.num_shards_ = groups.servers + groups.workers;
  placement.table_shards_ = groups.servers > 0 ? groups.servers : groups.workers;
  placement.block_elements_ = block_elements;
  placement.partitions_ = PlaceIn(groups, variables);
  placement.variables_ = std::move(variables);
  placement.tables_ = std::move(tables);
  return placement;
}

absl::StatusOr<Placement> Placement::FromProto(const v1::Placement& proto) {
  RETURN_IF_ERROR(CheckNumbers(proto));
  Placement placement;
  placement.num_shards_ = proto.num_shards();
  placement.table_shards_ = proto.table_shards() == 0 ? proto.num_shards() : proto.table_shards();
  placement.block_elements_ = proto.block_elements();
  ASSIGN_OR_RETURN(placement.variables_, ReadVariables(proto));
  for (int p = 0; p < proto.partitions_size(); ++p) {
    ASSIGN_OR_RETURN(Partition partition, ReadPartition(proto, p));
    placement.partitions_.push_back(partition);
  }
  RETURN_IF_ERROR(CheckCovered(placement.variables_, placement.partitions_));
  for (const v1::TableSpec& table : proto.tables()) {
    ASSIGN_OR_RETURN(placement.tables_.emplace_back(), TableSpecFromProto(table));
  }
  RETURN_IF_ERROR(CheckTableNames(placement.variables_, placement.tables_));
  return placement;
}

v1::Placement Placement::ToProto() const {
  v1::Placement proto;
  proto.set_num_shards(static_cast<uint32_t>(num_shards_));
  proto.set_block_elements(block_elements_);
  for (const VariableSpec& variable : variables_) {
    *proto.add_variables() = VariableSpecToProto(variable);
  }
  for (const Partition& partition : partitions_) {
    v1::Partition* entry = proto.add_partitions();
    entry->set_variable(static_cast<uint32_t>(partition.variable));
    entry->set_shard(static_cast<uint32_t>(partition.shard));
    entry->set_row_begin(partition.row_begin);
    entry->set_row_end(partition.row_end);
  }
  for (const TableSpec& table : tables_) *proto.add_tables() = TableSpecToProto(table);
  proto.set_row_partitions(row_partitions());
  if (!tables_.empty() && table_shards_ < num_shards_) {
    proto.set_table_shards(static_cast<uint32_t>(table_shards_));
  }
  return proto;
}

uint32_t Placement::row_partitions() const { return tables_.empty() ? 0 : kRowPartitions; }

RowPartitionRun Placement::RowPartitionsOf(size_t shard) const {
  return tables_.empty() ? RowPartitionRun() : RowPartitionsOfShard(shard, table_shards_);
}

size_t Placement::ShardOfRowPartition(uint32_t partition) const {
  return ((uint64_t{partition} + 1) * table_shards_ - 1) / row_partitions();
}

const VariableSpec& Placement::VariableOf(size_t p) const {
  return variables_[partition(p).variable];
}

int64_t Placement::PartitionElements(size_t p) const {
  return (partition(p).row_end - partition(p).row_begin) * VariableOf(p).shape.row_elements();
}

int64_t Placement::PartitionFirstElement(size_t p) const {
  return partition(p).row_begin * VariableOf(p).shape.row_elements();
}

int64_t Placement::NumBlocks(size_t p) const {
  const int64_t elements = PartitionElements(p);
  return elements / block_elements_ + (elements % block_elements_ != 0 ? 1 : 0);
}

int64_t Placement::BlockElements(size_t p, int64_t b) const {
  return std::min(block_elements_, PartitionElements(p) - b * block_elements_);
}

std::vector<size_t> Placement::PartitionsOf(size_t shard) const {
  std::vector<size_t> positions;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    if (partitions_[p].shard == shard) positions.push_back(p);
  }
  return positions;
}

std::vector<ElementRange> Placement::RangesOf(size_t shard) const {
  std::vector<ElementRange> ranges;
  for (const size_t p : PartitionsOf(shard)) {
    const int64_t begin = PartitionFirstElement(p);
    ranges.push_back({partition(p).variable, begin, begin + PartitionElements(p)});
  }
  return ranges;
}

int64_t Placement::ShardBytes(size_t shard) const {
  int64_t bytes = 0;
  for (size_t p : PartitionsOf(shard)) bytes += PartitionElements(p) * kElementBytes;
  return bytes;
}

uint64_t Placement::Fingerprint() const {
  return StableHash(SerializeDeterministically(ToProto()));
}

}  // namespace keelson
