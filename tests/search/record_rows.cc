#include "tests/search/record_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_tables.h"
#include "core/optim/row_optimizer.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

// From both ends of all ids.
uint64_t NthId(uint64_t number) { return number % 2 == 0 ? number / 2 : ~(number / 2); }

std::string NameOf(size_t partition) {
  return absl::StrCat(kRecordTable, ", partition ", kCountedPartitions[partition]);
}

absl::Status Wrong(const BundleReader& snapshot, size_t partition, const std::string& what) {
  return absl::DataLossError(absl::StrCat(snapshot.prefix(), ": ", NameOf(partition), ": ", what));
}

bool AllEqual(const float* row) {
  return std::all_of(row, row + kRecordTableDim, [&](float value) { return value == row[0]; });
}

std::string RowText(const float* row) {
  std::string text;
  for (int64_t i = 0; i < kRecordTableDim; ++i) absl::StrAppend(&text, i > 0 ? " " : "", row[i]);
  return text;
}

}  // namespace

RecordRows::RecordRows(int64_t records, int64_t expire_after)
    : records_(records), expire_after_(expire_after), ids_(kCountedPartitions.size()) {
  const uint64_t salt = TableSalt(kRecordTable);
  for (size_t p = 0; p < ids_.size(); ++p) {
    for (uint64_t i = 0; ids_[p].size() < static_cast<size_t>(1 + records); ++i) {
      const uint64_t id = NthId(i);
      if (RowPartitionOf(MixId(id, salt)) != kCountedPartitions[p]) continue;
      meanings_[id] = {p, static_cast<int64_t>(ids_[p].size()) - 1};
      ids_[p].push_back(id);
    }
  }
}

std::vector<uint64_t> RecordRows::IdsOf(int64_t record) const {
  std::vector<uint64_t> ids;
  for (const std::vector<uint64_t>& of_partition : ids_) {
    ids.push_back(of_partition[0]);
    ids.push_back(of_partition[static_cast<size_t>(1 + record)]);
  }
  return ids;
}

absl::StatusOr<std::vector<RowCounts>> RecordRows::ReadCounts(const BundleReader& snapshot,
                                                              double rate) const {
  ASSIGN_OR_RETURN(const StoredTables tables, StoredTables::Open(&snapshot));
  const StoredTable* const table = tables.Find(kRecordTable);
  if (table == nullptr) {
    return absl::DataLossError(absl::StrCat(snapshot.prefix(), ": no table ", kRecordTable));
  }
  std::vector<std::string> missing;
  RETURN_IF_ERROR(tables.CheckColumns(*table, {}, &missing));
  std::vector<RowCounts> counts(ids_.size());
  for (RowCounts& each : counts) each.own.resize(static_cast<size_t>(records_));
  int64_t known = 0;
  for (size_t p = 0; p < ids_.size(); ++p) {
    TableColumns columns;
    RETURN_IF_ERROR(tables.Read(*table, {}, kCountedPartitions[p], &columns));
    known += columns.rows();
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      const float* const row = columns.values.data() + i * kRecordTableDim;
      const auto meaning = meanings_.find(columns.ids[i]);
      if (meaning == meanings_.end()) {
        return Wrong(snapshot, p, absl::StrCat("a row of id ", columns.ids[i]));
      }
      const double most = rate * columns.updates[i];
      const int64_t record = meaning->second.record;
      const bool fits = record < 0 ? row[0] == most : row[0] > 0 && row[0] <= most;
      if (!AllEqual(row) || !fits) {
        return Wrong(snapshot, p,
                     absl::StrCat("row ", record, " is ", RowText(row), " after ",
                                  columns.updates[i], " updates"));
      }
      const bool expired = expire_after_ > 0 &&
                           MissedSteps(columns.last_steps[i], tables.steps_done()) >= expire_after_;
      if (expired) continue;
      (record < 0 ? counts[p].common : counts[p].own[static_cast<size_t>(record)]) = row[0];
    }
    if (expire_after_ > 0) continue;
    const float sum = std::accumulate(counts[p].own.begin(), counts[p].own.end(), 0.0f);
    if (sum == counts[p].common) continue;
    return Wrong(snapshot, p,
                 absl::StrCat("the common row counts ", counts[p].common, ", the others ", sum));
  }
  if (known == table->AllRows()) return counts;
  return absl::DataLossError(absl::StrCat(snapshot.prefix(), ": ", table->AllRows(),
                                          " rows, of which ", known, " are records'"));
}

std::string CheckSums(const std::map<std::string, double>& sums) {
  for (const auto& [name, sum] : sums) {
    const auto& [first, expected] = *sums.begin();
    if (sum == expected) continue;
    return absl::StrCat(first, " counts ", expected, " in all, ", name, " ", sum);
  }
  return "";
}

std::string CheckShardSums(
    const BundleReader& snapshot, const std::vector<RowCounts>& counts, int64_t records,
    size_t shards, const std::function<double(const std::string& variable, double sum)>& count_of) {
  for (size_t s = 0; s < shards; ++s) {
    const std::string name = ShardStateName(s, shards);
    const absl::StatusOr<std::string> bytes = snapshot.ReadString(name);
    if (!bytes.ok()) return bytes.status().ToString();
    const absl::StatusOr<v1::ShardState> state = ParseShardState(*bytes, snapshot.prefix(), name);
    if (!state.ok()) return state.status().ToString();
    std::map<std::string, double> sums;
    for (const v1::ShardState::Block& block : state->blocks()) {
      const std::string& variable = state->variables(static_cast<int>(block.variable()));
      std::vector<float> values(static_cast<size_t>(records));
      const absl::Status read = snapshot.ReadElements(variable, 0, absl::MakeSpan(values));
      if (!read.ok()) return read.ToString();
      sums[variable] = count_of(variable, std::accumulate(values.begin(), values.end(), 0.0));
    }
    for (size_t p = 0; p < counts.size(); ++p) {
      const uint32_t partition = kCountedPartitions[p];
      if (partition < state->first_row_partition()) continue;
      if (partition >= state->first_row_partition() + state->num_row_partitions()) continue;
      sums[NameOf(p)] = double{counts[p].common};
    }
    const std::string wrong = CheckSums(sums);
    if (!wrong.empty()) return absl::StrCat(snapshot.prefix(), ": ", name, ": ", wrong);
  }
  return "";
}

std::string CheckReadRows(const std::vector<float>& rows, float unit, bool expire) {
  for (size_t i = 0; i * kRecordTableDim < rows.size(); ++i) {
    const float* const row = rows.data() + i * kRecordTableDim;
    const float* const common = rows.data() + (i - i % 2) * kRecordTableDim;
    const bool whole = row[0] >= 0 && std::fmod(row[0], unit) == 0;
    if (AllEqual(row) && whole && (expire || row[0] <= common[0])) continue;
    return absl::StrCat(NameOf(i / 2), ": a worker reads ", RowText(row), " in ",
                        i % 2 == 0 ? "the common row" : "its record's row", ", and ",
                        RowText(common), " in the common one");
  }
  return "";
}

}  // namespace keelson
