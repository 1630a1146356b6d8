#include "core/client/exchange/row_message.h"

#include <cstdint>
#include <utility>

#include "core/table/id_list.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

using Owner = std::shared_ptr<const RowMessage>;

Fragment Holding(Owner message, absl::string_view bytes) {
  Pin pin([](void* user) { delete static_cast<Owner*>(user); }, new Owner(std::move(message)));
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), std::move(pin)};
}

// The next `size` bytes of a payload.
uint8_t* Grow(size_t size, std::string* payload) {
  const size_t begin = payload->size();
  payload->resize(begin + size);
  return reinterpret_cast<uint8_t*>(payload->data()) + begin;
}

}  // namespace

RowMessage::RowMessage(absl::Span<const PlannedTable> tables, RowPartitionRun run,
                       const BatchIds* applied, TableGradients gradients, const BatchIds* wanted)
    : run_(run) {
  if (run.count == 0) return;
  if (applied != nullptr) AddApplies(tables, *applied, gradients);
  num_applies_ = sections_.size();
  apply_bytes_ = payload_.size();
  if (wanted == nullptr) return;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (!wanted->Ids(t, run).empty()) AddSection(*wanted, t)->format = tables[t].pull;
  }
}

RowSection* RowMessage::AddSection(const BatchIds& batch, size_t table) {
  const absl::Span<const uint32_t> counts = batch.Counts(table, run_);
  const absl::Span<const uint64_t> ids = batch.Ids(table, run_);
  const IdListForm form = SmallestForm(counts, ids);
  EncodeIdList(form, counts, ids, Grow(form.bytes, &payload_));
  RowSection& section = sections_.emplace_back();
  section.table = static_cast<uint32_t>(table);
  section.first_partition = run_.first;
  section.num_partitions = run_.count;
  section.num_ids = static_cast<uint32_t>(ids.size());
  section.id_coding = form.coding;
  section.id_bytes = static_cast<uint32_t>(form.bytes);
  return &section;
}

void RowMessage::AddApplies(absl::Span<const PlannedTable> tables, const BatchIds& applied,
                            TableGradients gradients) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const size_t rows = applied.Ids(t, run_).size();
    const bool last_chance = sections_.empty() && t + 1 == tables.size();
    if (rows == 0 && !last_chance) continue;
    RowSection* const section = AddSection(applied, t);
    section->purpose = RowPurpose::kApply;
    section->format = tables[t].push;
    const int64_t dim = tables[t].dim;
    EncodeRows(section->format, gradients[t].subspan(applied.Begin(t, run_) * dim, rows * dim), dim,
               Grow(rows * RowBytes(section->format, dim), &payload_));
  }
}

Fragment RowMessage::Payload(Owner message) {
  const absl::string_view bytes = message->payload_;
  return Holding(std::move(message), bytes);
}

Fragment RowMessage::ReadPayload(Owner message) {
  const absl::string_view bytes = message->payload_;
  const size_t begin = message->apply_bytes_;
  return Holding(std::move(message), bytes.substr(begin));
}

}  // namespace keelson
