#include "core/client/exchange/row_message.h"

#include <cstdint>
#include <utility>

#include "core/table/id_list.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

using Owner = std::shared_ptr<const RowMessage>;

Fragment Holding(Owner message, const uint8_t* bytes, size_t size) {
  Pin pin([](void* user) { delete static_cast<Owner*>(user); }, new Owner(std::move(message)));
  return {bytes, size, std::move(pin)};
}

}  // namespace

RowMessage::RowMessage(absl::Span<const PlannedTable> tables, RowPartitionRun run,
                       const BatchIds* applied, TableGradients gradients, const BatchIds* wanted)
    : run_(run) {
  if (run.count == 0) return;
  std::vector<Part> parts;
  AddSections(tables, applied, wanted, &parts);
  // All of it is written, once.
  payload_.reset(new uint8_t[bytes_]);
  Encode(tables, parts, gradients);
}

void RowMessage::AddSections(absl::Span<const PlannedTable> tables, const BatchIds* applied,
                             const BatchIds* wanted, std::vector<Part>* parts) {
  for (size_t t = 0; applied != nullptr && t < tables.size(); ++t) {
    const bool last_chance = sections_.empty() && t + 1 == tables.size();
    if (applied->Ids(t, run_).empty() && !last_chance) continue;
    AddSection(*applied, t, RowPurpose::kApply, tables[t].push, tables[t].dim, parts);
  }
  num_applies_ = sections_.size();
  apply_bytes_ = bytes_;
  for (size_t t = 0; wanted != nullptr && t < tables.size(); ++t) {
    if (wanted->Ids(t, run_).empty()) continue;
    AddSection(*wanted, t, RowPurpose::kRead, tables[t].pull, tables[t].dim, parts);
  }
}

void RowMessage::AddSection(const BatchIds& batch, size_t table, RowPurpose purpose,
                            WireFormat format, int64_t dim, std::vector<Part>* parts) {
  const absl::Span<const uint64_t> ids = batch.Ids(table, run_);
  const IdListForm form = SmallestForm(batch.Counts(table, run_), ids);
  RowSection& section = sections_.emplace_back();
  section.table = static_cast<uint32_t>(table);
  section.first_partition = run_.first;
  section.num_partitions = run_.count;
  section.num_ids = static_cast<uint32_t>(ids.size());
  section.id_coding = form.coding;
  section.id_bytes = static_cast<uint32_t>(form.bytes);
  section.purpose = purpose;
  section.format = format;
  bytes_ += form.bytes;
  if (purpose == RowPurpose::kApply) bytes_ += ids.size() * RowBytes(format, dim);
  parts->push_back({&batch, table, form});
}

void RowMessage::Encode(absl::Span<const PlannedTable> tables, absl::Span<const Part> parts,
                        TableGradients gradients) {
  uint8_t* to = payload_.get();
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [batch, table, form] = parts[i];
    const absl::Span<const uint64_t> ids = batch->Ids(table, run_);
    EncodeIdList(form, batch->Counts(table, run_), ids, to);
    to += form.bytes;
    if (i >= num_applies_) continue;
    const auto dim = static_cast<size_t>(tables[table].dim);
    EncodeRows(sections_[i].format,
               gradients[table].subspan(batch->Begin(table, run_) * dim, ids.size() * dim),
               tables[table].dim, to);
    to += ids.size() * RowBytes(sections_[i].format, tables[table].dim);
  }
}

Fragment RowMessage::Payload(Owner message) {
  const RowMessage& of = *message;
  return Holding(std::move(message), of.payload_.get(), of.bytes_);
}

Fragment RowMessage::ReadPayload(Owner message) {
  const RowMessage& of = *message;
  return Holding(std::move(message), of.payload_.get() + of.apply_bytes_, of.read_bytes());
}

}  // namespace keelson
