#include "ps_server/service/row_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

// Goes through the lists of sections partition by partition.
class PartitionIds {
 public:
  explicit PartitionIds(size_t sections) : begins_(sections) {}

  // The ids that a section has in the run's partition `i`; those of one section are asked for in
  // the order of the partitions.
  absl::Span<const uint64_t> Take(size_t section, const IdList& list, size_t i) {
    const size_t begin = begins_[section];
    begins_[section] += list.counts[i];
    return absl::MakeConstSpan(list.ids).subspan(begin, list.counts[i]);
  }
  size_t begin(size_t section) const { return begins_[section]; }

 private:
  std::vector<size_t> begins_;
};

// That of all sections of a message.
RowPartitionRun RunOf(const std::vector<ReceivedRows>& sections) {
  const RowSection& first = sections.front().section;
  return {first.first_partition, first.num_partitions};
}

// Calls `take` with the updates of each partition of the run.
void ForEachPartition(const TableStore& store, RowSections* sections,
                      absl::FunctionRef<void(TablePartition*, absl::Span<const RowUpdate>)> take) {
  PartitionIds ids(sections->apply.size());
  std::vector<RowUpdate> updates(sections->apply.size());
  const RowPartitionRun run = RunOf(sections->apply);
  for (uint32_t i = 0; i < run.count; ++i) {
    for (size_t s = 0; s < sections->apply.size(); ++s) {
      ReceivedRows& rows = sections->apply[s];
      updates[s] = {rows.section.table, ids.Take(s, rows.list, i), rows.section.format,
                    &rows.gradients};
    }
    take(store.Partition(run.first + i), updates);
  }
}

RowSection AnswerTo(const RowSection& asked, uint32_t num_rows) {
  RowSection section;
  section.table = asked.table;
  section.first_partition = asked.first_partition;
  section.num_partitions = asked.num_partitions;
  section.num_ids = asked.num_ids;
  section.format = asked.format;
  section.num_rows = num_rows;
  return section;
}

}  // namespace

absl::StatusOr<RowSections> ReadSections(const TableStore* store, BulkMethod method,
                                         const BulkRequest& request, bool reject_non_finite,
                                         ByteCursor payload) {
  RowSections sections;
  if (request.rows.empty()) return sections;
  if (store == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: expected none, since the model has no tables, found ",
                     request.rows.size(), " sections"));
  }
  ASSIGN_OR_RETURN(
      const uint64_t bytes,
      CheckRowSections(method, request.rows, store->wire_tables(), store->partitions()));
  if (bytes != payload.remaining()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows: expected ", bytes, " bytes at the end of the payload, found ", payload.remaining()));
  }
  ASSIGN_OR_RETURN(std::vector<ReceivedRows> received,
                   ReadRowSections(request.rows, store->wire_tables(), reject_non_finite, payload));
  for (ReceivedRows& rows : received) {
    const bool applies = rows.section.purpose == RowPurpose::kApply;
    (applies ? sections.apply : sections.read).push_back(std::move(rows));
  }
  return sections;
}

bool ApplyRows(TableStore* store, const PushIdentity& push, int64_t step, RowSections* sections,
               BulkResponse* response) {
  const RowTime time = store->UpdateAt(step, push.learning_rate);
  bool applied = false;
  ForEachPartition(*store, sections,
                   [&](TablePartition* partition, absl::Span<const RowUpdate> updates) {
                     applied = partition->Apply(push, time, updates);
                     if (!applied) ++response->duplicate_blocks;
                   });
  return applied;
}

absl::Status StageRows(TableStore* store, const BulkRequest& request, RowSections* sections,
                       BulkResponse* response) {
  const RoundId round = {request.round, request.attempt};
  PushIdentity push = {request.incarnation, request.sequence};
  push.order = request.order;
  bool outdated = false;
  ForEachPartition(
      *store, sections, [&](TablePartition* partition, absl::Span<const RowUpdate> updates) {
        const StageResult result = partition->Stage(push, round, request.weight, updates);
        if (result == StageResult::kDuplicate) ++response->duplicate_blocks;
        if (result == StageResult::kOutdated) outdated = true;
      });
  if (!outdated) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(round.ToString(), ": a newer one has begun"));
}

void AnswerRows(const TableStore& store, const RowSections& sections, BulkResponse* response,
                ValuePayload* values) {
  std::vector<RowAnswer> answers(sections.read.size());
  for (size_t s = 0; s < answers.size(); ++s) {
    const RowSection& section = sections.read[s].section;
    answers[s].presence.resize((section.num_ids + 7) / 8);
    // Clients ask for no more than one message of rows, few of which are absent.
    const int64_t dim = store.tables()[section.table].spec.dim;
    answers[s].rows.reserve(
        std::min(section.num_ids * RowBytes(section.format, dim), kBulkPayloadBytes));
  }
  const RowTime time = store.ReadNow();
  PartitionIds ids(sections.read.size());
  std::vector<RowQuery> queries(sections.read.size());
  const RowPartitionRun run = RunOf(sections.read);
  for (uint32_t i = 0; i < run.count; ++i) {
    for (size_t s = 0; s < queries.size(); ++s) {
      const ReceivedRows& rows = sections.read[s];
      const size_t first_bit = ids.begin(s);
      queries[s] = {rows.section.table, ids.Take(s, rows.list, i), rows.section.format, first_bit,
                    &answers[s]};
    }
    store.Partition(run.first + i)->Read(time, queries);
  }
  for (size_t s = 0; s < answers.size(); ++s) {
    response->rows.push_back(AnswerTo(sections.read[s].section, answers[s].num_rows));
    values->AddBytes(std::string(answers[s].presence.begin(), answers[s].presence.end()));
    values->AddBytes(std::move(answers[s].rows));
  }
}

}  // namespace keelson
