#include "core/client/exchange/row_transfer.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/table/row_sections.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

absl::Status Malformed(size_t section, absl::string_view what) {
  return absl::InternalError(absl::StrCat("rows[", section, "]: ", what));
}

// Whether `answer` is of what `asked` asks for.
bool Answers(const RowSection& answer, const RowSection& asked) {
  return answer.table == asked.table && answer.first_partition == asked.first_partition &&
         answer.num_partitions == asked.num_partitions && answer.num_ids == asked.num_ids &&
         answer.format == asked.format && answer.purpose == asked.purpose;
}

// Bit i of the bytes.
bool Present(const std::string& bits, size_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

size_t CountPresent(const std::string& bits) {
  size_t present = 0;
  for (const char byte : bits) present += std::popcount(static_cast<uint8_t>(byte));
  return present;
}

}  // namespace

std::shared_ptr<RowTransfer> RowTransfer::ForPull(const TablePlan* layout, const ShardPlans& plans,
                                                  std::shared_ptr<const BatchIds> wanted,
                                                  RowMatrices landing) {
  std::shared_ptr<RowTransfer> step(new RowTransfer(layout, std::move(wanted), std::move(landing)));
  step->AddMessages(plans, nullptr, {});
  return step;
}

std::shared_ptr<RowTransfer> RowTransfer::ForPush(const TablePlan* layout, const ShardPlans& plans,
                                                  const BatchIds& applied, TableGradients gradients,
                                                  std::shared_ptr<const BatchIds> wanted,
                                                  RowMatrices landing) {
  std::shared_ptr<RowTransfer> step(new RowTransfer(layout, std::move(wanted), std::move(landing)));
  step->AddMessages(plans, &applied, gradients);
  return step;
}

RowTransfer::RowTransfer(const TablePlan* layout, std::shared_ptr<const BatchIds> wanted,
                         RowMatrices landing)
    : layout_(*layout), wanted_(std::move(wanted)), landing_(std::move(landing)) {
  landing_.resize(layout_.tables.size());
  for (size_t t = 0; t < landing_.size(); ++t) {
    landing_[t].resize(wanted_ == nullptr ? 0
                                          : (*wanted_->ids())[t].size() * layout_.tables[t].dim);
  }
}

void RowTransfer::AddMessages(const ShardPlans& plans, const BatchIds* applied,
                              TableGradients gradients) {
  shards_.resize(plans.size());
  for (size_t s = 0; s < plans.size(); ++s) {
    const RowPartitionRun held = layout_.held[s];
    if (held.count == 0) continue;
    const PlannedMessage& last = plans[s].back();
    const size_t request_bytes = applied == nullptr ? 0 : last.push_bytes;
    for (const RowPartitionRun run :
         PlanRowRuns(held, applied, wanted_.get(), request_bytes, last.pull_bytes)) {
      shards_[s].push_back(
          {std::make_shared<RowMessage>(layout_.tables, run, applied, gradients, wanted_.get())});
    }
  }
}

absl::StatusOr<uint64_t> RowTransfer::CheckAnswer(size_t shard, size_t i,
                                                  absl::Span<const RowSection> answer) const {
  const absl::Span<const RowSection> asked = message(shard, i)->reads();
  if (answer.size() != asked.size()) {
    return absl::InternalError(
        absl::StrCat("expected ", asked.size(), " sections of rows, found ", answer.size()));
  }
  uint64_t bytes = 0;
  for (size_t r = 0; r < answer.size(); ++r) {
    if (!Answers(answer[r], asked[r])) {
      return Malformed(r, "expected what was asked for, found another table, run or format");
    }
    bytes += AnswerRowBytes(answer[r], layout_.tables[answer[r].table].dim);
  }
  return bytes;
}

absl::Status RowTransfer::Take(size_t shard, size_t i, absl::Span<const RowSection> answer,
                               uint64_t store_id, ByteCursor* cursor) {
  for (size_t r = 0; r < answer.size(); ++r) {
    const absl::Status status = TakeSection(answer[r], cursor);
    if (!status.ok()) return Malformed(r, status.message());
  }
  shards_[shard][i].store_id = store_id;
  return absl::OkStatus();
}

absl::Status RowTransfer::TakeSection(const RowSection& section, ByteCursor* cursor) {
  std::string bits((section.num_ids + 7) / 8, '\0');
  cursor->Read(bits.data(), bits.size());
  const size_t present = CountPresent(bits);
  const size_t spare = bits.size() * 8 - section.num_ids;
  if (present != section.num_rows ||
      (spare > 0 && static_cast<uint8_t>(bits.back()) >> (8 - spare) != 0)) {
    return absl::InternalError(absl::StrCat("expected ", section.num_rows, " presence bits among ",
                                            section.num_ids, " ids, found ", present));
  }
  const PlannedTable& table = layout_.tables[section.table];
  const RowPartitionRun run = {section.first_partition, section.num_partitions};
  const absl::Span<const uint64_t> ids = wanted_->Ids(section.table, run);
  float* const rows =
      landing_[section.table].data() + wanted_->Begin(section.table, run) * table.dim;
  // Rows that follow each other in the answer and in the matrix are taken at once.
  for (size_t i = 0; i < ids.size();) {
    size_t end = i;
    while (end < ids.size() && Present(bits, end)) ++end;
    TakeRows(section.format, cursor, table.dim, {rows + i * table.dim, (end - i) * table.dim});
    for (i = end; i < ids.size() && !Present(bits, i); ++i) {
      table.absent.Fill(ids[i], {rows + i * table.dim, static_cast<size_t>(table.dim)});
    }
  }
  return absl::OkStatus();
}

bool RowTransfer::AllFrom(size_t shard, uint64_t store_id) const {
  return std::all_of(shards_[shard].begin(), shards_[shard].end(), [&](const Sent& sent) {
    return sent.message->reads().empty() || sent.store_id == store_id;
  });
}

}  // namespace keelson
