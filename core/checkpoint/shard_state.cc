#include "core/checkpoint/shard_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"

namespace keelson {
namespace {

using Applied = v1::ShardState::Applied;

constexpr int64_t kMostRows = int64_t{1} << 58;

// Whether so many rows of each partition, from `first` on, lie within a tensor of `total`.
template <typename Counts>
bool Fit(int64_t first, int64_t total, const Counts& counts) {
  if (first < 0 || total > kMostRows) return false;
  int64_t end = first;
  for (const int64_t rows : counts) {
    if (end > total || rows < 0 || rows > total - end) return false;
    end += rows;
  }
  return end <= total;
}

bool RowsFit(const v1::ShardState::Table& table) {
  return Fit(table.first_row(), table.total_rows(), table.rows());
}

// Of a delta: whether there is a number of rows for each partition, and the erased ids fit.
bool ChangesFit(const v1::ShardState::Table& table, uint32_t partitions) {
  const auto counts = static_cast<int>(partitions);
  // So that their sum is no more than kMostRows.
  constexpr int64_t kMost = kMostRows / int64_t{kRowPartitions};
  const auto is_number = [](int64_t rows) { return rows >= 0 && rows <= kMost; };
  return table.all_rows_size() == counts && table.erased_size() == counts &&
         std::all_of(table.all_rows().begin(), table.all_rows().end(), is_number) &&
         Fit(table.first_erased(), table.total_erased(), table.erased());
}

absl::Status CheckTable(const v1::ShardState& state, const v1::ShardState::Table& table,
                        int64_t least_dim, int64_t most_dim, const std::string& where) {
  if (table.rows_size() != static_cast<int>(state.num_row_partitions())) {
    return absl::DataLossError(absl::StrCat(where, ": table ", table.name(), ": expected ",
                                            state.num_row_partitions(), " numbers of rows, found ",
                                            table.rows_size()));
  }
  if (table.dim() < least_dim || table.dim() > most_dim || !RowsFit(table)) {
    return absl::DataLossError(absl::StrCat(where, ": table ", table.name(), ": rows of dim ",
                                            table.dim(), " from ", table.first_row(), " on, of ",
                                            table.total_rows(), ", make no sense"));
  }
  if (state.has_base() && !ChangesFit(table, state.num_row_partitions())) {
    return absl::DataLossError(absl::StrCat(where, ": table ", table.name(),
                                            ": what has changed since step ", state.base().step(),
                                            " makes no sense"));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const v1::ShardState& state, const std::string& where) {
  const uint64_t end = uint64_t{state.first_row_partition()} + state.num_row_partitions();
  if (end > kRowPartitions) {
    return absl::DataLossError(absl::StrCat(where, ": partitions of rows: expected up to at most ",
                                            kRowPartitions, ", found up to ", end));
  }
  for (const v1::ShardState::Table& table : state.tables()) {
    RETURN_IF_ERROR(CheckTable(state, table, 1, TableSpec::kMostDim, where));
  }
  for (const v1::ShardState::Table& ghosts : state.ghosts()) {
    RETURN_IF_ERROR(CheckTable(state, ghosts, 0, 0, where));
  }
  return absl::OkStatus();
}

absl::Status CheckRuns(const v1::ShardState& state, const std::string& where) {
  const uint64_t units = static_cast<uint64_t>(state.blocks_size()) + state.num_row_partitions();
  for (const Applied& applied : state.applied()) {
    uint32_t end = 0;
    for (const Applied::Run& run : applied.runs()) {
      if (run.begin() < end || run.end() <= run.begin() || run.end() > units) {
        return absl::DataLossError(absl::StrCat(where, ": applied to units ", run.begin(), " to ",
                                                run.end(), ", expected from ", end, " to at most ",
                                                units));
      }
      end = run.end();
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShardStateName(size_t shard, size_t num_shards) {
  return absl::StrCat(kShardStatePrefix, shard, "-of-", num_shards);
}

absl::Status CheckFormat(absl::string_view where, uint32_t known, uint32_t found) {
  if (found <= known) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(where, ": expected at most format ", known,
                                                    ", found ", found,
                                                    ": a newer version of Keelson has written it"));
}

absl::StatusOr<v1::ShardState> ParseShardState(const std::string& bytes, const std::string& prefix,
                                               const std::string& name) {
  const std::string where = absl::StrCat(prefix, ": ", name);
  v1::ShardState state;
  if (!state.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(where, ": not a ShardState"));
  }
  RETURN_IF_ERROR(CheckFormat(where, kShardStateFormat, state.format()));
  RETURN_IF_ERROR(CheckTables(state, where));
  RETURN_IF_ERROR(CheckRuns(state, where));
  return state;
}

std::vector<v1::ShardState::WorkerSequence> AppliedBy(const v1::ShardState& state, int block) {
  std::vector<v1::ShardState::WorkerSequence> pushes;
  if (block < state.blocks_size()) {
    const auto& listed = state.blocks(block).applied();
    pushes.assign(listed.begin(), listed.end());
  }
  const auto unit = static_cast<uint32_t>(block);
  for (const Applied& applied : state.applied()) {
    const auto run =
        std::partition_point(applied.runs().begin(), applied.runs().end(),
                             [unit](const Applied::Run& run) { return run.end() <= unit; });
    if (run == applied.runs().end() || unit < run->begin()) continue;
    pushes.emplace_back().set_incarnation(applied.incarnation());
    pushes.back().set_sequence(run->sequence());
  }
  return pushes;
}

absl::StatusOr<std::string> SerializeState(const google::protobuf::MessageLite& message,
                                           absl::string_view name, size_t most_bytes) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > most_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": expected at most ", most_bytes, " bytes, found ", bytes));
  }
  return message.SerializeAsString();
}

}  // namespace keelson
