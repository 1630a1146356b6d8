#include "core/client/exchange/fake_tables_testing.h"

#include "core/table/initial_rows.h"
#include "core/wire/row_codec.h"

namespace keelson {

FakeTables::FakeTables(const Placement& placement, size_t shard)
    : specs_(placement.tables()), held_(placement.RowPartitionsOf(shard)) {
  for (const TableSpec& spec : specs_) tables_.emplace_back(spec);
}

absl::StatusOr<uint64_t> FakeTables::Check(BulkMethod method, const BulkRequest& request) const {
  return CheckRowSections(method, request.rows, tables_, held_);
}

absl::StatusOr<std::vector<ReceivedRows>> FakeTables::Receive(const BulkRequest& request,
                                                              ByteCursor cursor) const {
  return ReadRowSections(request.rows, tables_, /*reject_non_finite=*/true, cursor);
}

uint32_t FakeTables::Apply(const BulkRequest& request, const std::vector<ReceivedRows>& received) {
  if (received.empty() || received.front().section.purpose != RowPurpose::kApply) return 0;
  const RowSection& first = received.front().section;
  std::vector<bool> duplicate(kRowPartitions);
  uint32_t duplicates = 0;
  for (uint32_t i = 0; i < first.num_partitions; ++i) {
    const uint32_t p = first.first_partition + i;
    duplicate[p] = request.sequence <= sequences_[p];
    duplicates += duplicate[p] ? 1 : 0;
    pushes[p] += duplicate[p] ? 0 : 1;
    weights_[p] += duplicate[p] ? 0 : request.weight;
    sequences_[p] = request.sequence;
  }
  for (const ReceivedRows& rows : received) {
    if (rows.section.purpose == RowPurpose::kApply) Update(request, rows, duplicate);
  }
  return duplicates;
}

void FakeTables::Update(const BulkRequest& request, const ReceivedRows& received,
                        const std::vector<bool>& duplicate) {
  const uint32_t t = received.section.table;
  ByteCursor cursor = received.gradients;
  for (const uint64_t id : received.list.ids) {
    std::vector<float> gradient(tables_[t].dim);
    TakeRows(received.section.format, &cursor, tables_[t].dim, absl::MakeSpan(gradient));
    if (duplicate[RowPartitionOf(MixId(id, tables_[t].salt))]) continue;
    std::vector<float>& to = request.attempt == 0 ? RowOf({t, id}) : sums_[{t, id}];
    const float factor = request.attempt == 0 ? -1 : request.weight;
    to.resize(gradient.size());
    for (size_t e = 0; e < gradient.size(); ++e) to[e] += factor * gradient[e];
  }
}

std::vector<float>& FakeTables::RowOf(const Key& key) {
  std::vector<float>& row = rows[key];
  if (row.empty()) {
    const TableSpec& spec = specs_[key.first];
    row.resize(spec.dim);
    InitialRows(spec.initializer, 0, TableSalt(spec.name)).Fill(key.second, absl::MakeSpan(row));
  }
  return row;
}

void FakeTables::Read(const std::vector<ReceivedRows>& received, std::vector<RowSection>* answer,
                      std::string* payload) const {
  for (const ReceivedRows& asked : received) {
    if (asked.section.purpose != RowPurpose::kRead) continue;
    RowSection section = asked.section;
    section.id_coding = IdCoding::kRaw64;
    section.id_bytes = 0;
    std::string bits((section.num_ids + 7) / 8, '\0'), bytes;
    for (size_t i = 0; i < asked.list.ids.size(); ++i) {
      const auto row = rows.find({section.table, asked.list.ids[i]});
      if (row == rows.end()) continue;
      bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
      ++section.num_rows;
      const auto dim = static_cast<int64_t>(row->second.size());
      std::string encoded(RowBytes(section.format, dim), '\0');
      EncodeRows(section.format, absl::MakeConstSpan(row->second), dim,
                 reinterpret_cast<uint8_t*>(encoded.data()));
      bytes += encoded;
    }
    answer->push_back(section);
    *payload += bits + bytes;
  }
}

void FakeTables::CommitRound() {
  for (auto& [key, sum] : sums_) {
    std::vector<float>& row = RowOf(key);
    const float weight = weights_[RowPartitionOf(MixId(key.second, tables_[key.first].salt))];
    for (size_t e = 0; e < sum.size(); ++e) row[e] -= sum[e] / weight;
  }
  sums_.clear();
  weights_ = {};
}

void FakeTables::Clear() {
  rows.clear();
  pushes = {};
  sequences_ = {};
  sums_.clear();
  weights_ = {};
}

}  // namespace keelson
