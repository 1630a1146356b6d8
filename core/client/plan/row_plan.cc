#include "core/client/plan/row_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/varint.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

absl::Status NotInOrder(absl::string_view table, uint64_t id, uint64_t before) {
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of table \"", table, "\": expected distinct ids by partition, then ascending, found ",
      id, " after ", before));
}

// What a message has of rows.
struct Load {
  size_t request = 0;
  size_t wanted = 0;  // of it
  size_t answer = 0;
};

bool Fits(const Load& load) {
  return load.request <= kBulkPayloadBytes && load.wanted <= kMostWantedBytes &&
         load.answer <= kBulkPayloadBytes;
}

void Add(uint32_t partition, const BatchIds* applied, const BatchIds* wanted, Load* load) {
  if (applied != nullptr) {
    load->request += applied->BytesOf(partition).ids + applied->BytesOf(partition).gradients;
  }
  if (wanted == nullptr) return;
  load->request += wanted->BytesOf(partition).ids;
  load->wanted += wanted->BytesOf(partition).ids;
  load->answer += wanted->BytesOf(partition).values;
}

}  // namespace

absl::StatusOr<std::vector<PlannedTable>> PlanTables(const Placement& placement, uint64_t seed,
                                                     absl::Span<const VariableFormats> formats) {
  const std::vector<TableSpec>& specs = placement.tables();
  if (!formats.empty() && formats.size() != specs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("formats: expected those of ", specs.size(),
                                                   " tables, found ", formats.size()));
  }
  std::vector<PlannedTable> tables;
  for (size_t t = 0; t < specs.size(); ++t) {
    const VariableFormats format = formats.empty() ? VariableFormats() : formats[t];
    for (const WireFormat used : {format.push, format.pull}) {
      if (IsRowFormat(used)) continue;
      return absl::InvalidArgumentError(absl::StrCat("formats of table \"", specs[t].name,
                                                     "\": expected a format of rows, found ",
                                                     WireFormatName(used)));
    }
    const uint64_t salt = TableSalt(specs[t].name);
    tables.push_back({specs[t].name, salt, specs[t].dim, format.push, format.pull,
                      InitialRows(specs[t].absent(), seed, salt)});
  }
  return tables;
}

absl::StatusOr<std::shared_ptr<const BatchIds>> BatchIds::Create(
    absl::Span<const PlannedTable> tables, std::shared_ptr<const RowIds> ids) {
  if (ids->size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: expected ids of ", tables.size(), " tables, found ", ids->size()));
  }
  std::shared_ptr<BatchIds> batch(new BatchIds(std::move(ids)));
  RETURN_IF_ERROR(batch->Divide(tables));
  RETURN_IF_ERROR(batch->CheckBytes());
  return batch;
}

absl::Status BatchIds::Divide(absl::Span<const PlannedTable> tables) {
  partitions_.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const std::vector<uint64_t>& ids = (*ids_)[t];
    Partitions& of = partitions_[t];
    uint32_t before = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint32_t partition = RowPartitionOf(MixId(ids[i], tables[t].salt));
      if (i > 0 && (partition < before || (partition == before && ids[i] <= ids[i - 1]))) {
        return NotInOrder(tables[t].name, ids[i], ids[i - 1]);
      }
      ++of.counts[partition];
      before = partition;
    }
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      const size_t count = of.counts[p];
      of.first[p + 1] = of.first[p] + count;
      bytes_[p].ids += VarintBytes(count) + count * sizeof(uint64_t);
      bytes_[p].gradients += count * RowBytes(tables[t].push, tables[t].dim);
      // Presence bits share their last byte at most.
      bytes_[p].values += (count + 7) / 8 + count * RowBytes(tables[t].pull, tables[t].dim);
    }
  }
  return absl::OkStatus();
}

absl::Status BatchIds::CheckBytes() const {
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const Bytes& bytes = bytes_[p];
    const size_t all = bytes.ids + std::max(bytes.gradients, bytes.values);
    if (bytes.ids <= kMostWantedBytes && all <= kMostPartitionBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of partition ", p, ": expected at most ", kMostWantedBytes, " bytes of ids and ",
        kMostPartitionBytes, " of ids and rows in one batch, found ", bytes.ids, " and ", all,
        ": use smaller batches"));
  }
  return absl::OkStatus();
}

std::vector<RowPartitionRun> PlanRowRuns(RowPartitionRun held, const BatchIds* applied,
                                         const BatchIds* wanted, size_t request_bytes,
                                         size_t answer_bytes) {
  std::vector<RowPartitionRun> runs = {{held.first, 0}};
  Load load{request_bytes, 0, answer_bytes};
  for (uint32_t p = held.first; p < held.first + held.count; ++p) {
    Load with = load;
    Add(p, applied, wanted, &with);
    if (!Fits(with)) {
      runs.push_back({p, 0});
      with = {};
      Add(p, applied, wanted, &with);
    }
    ++runs.back().count;
    load = with;
  }
  return runs;
}

}  // namespace keelson
