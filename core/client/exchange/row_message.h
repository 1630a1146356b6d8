// What one message has of table rows, encoded and ready to be sent repeatedly.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/client/plan/row_plan.h"
#include "core/table/id_list.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// The gradients of a batch, per table a matrix [ids, dim] in the order of the ids.
using TableGradients = absl::Span<const absl::Span<const float>>;

// Immutable. Its ropes share it, so that they may outlive whoever made it.
class RowMessage {
 public:
  // The gradients of `applied`, and the wish for the rows of `wanted`, either of which may be null;
  // of the run's partitions. An empty run has no sections. With `applied` there is a section that
  // says so even where the run has none of its ids, since a push counts for every partition.
  RowMessage(absl::Span<const PlannedTable> tables, RowPartitionRun run, const BatchIds* applied,
             TableGradients gradients, const BatchIds* wanted);

  RowPartitionRun run() const { return run_; }
  // Those with RowPurpose::kApply, then those with kRead.
  absl::Span<const RowSection> sections() const { return sections_; }
  absl::Span<const RowSection> reads() const {
    return absl::MakeConstSpan(sections_).subspan(num_applies_);
  }
  // Their bytes in the payload.
  size_t bytes() const { return bytes_; }
  size_t read_bytes() const { return bytes_ - apply_bytes_; }

  // The bytes of all sections, and of the reads alone, as a fragment that keeps `message` alive.
  static Fragment Payload(std::shared_ptr<const RowMessage> message);
  static Fragment ReadPayload(std::shared_ptr<const RowMessage> message);

 private:
  // What a section's bytes are made of.
  struct Part {
    const BatchIds* batch;
    size_t table;
    IdListForm form;
  };

  void AddSection(const BatchIds& batch, size_t table, RowPurpose purpose, WireFormat format,
                  int64_t dim, std::vector<Part>* parts);
  void AddSections(absl::Span<const PlannedTable> tables, const BatchIds* applied,
                   const BatchIds* wanted, std::vector<Part>* parts);
  void Encode(absl::Span<const PlannedTable> tables, absl::Span<const Part> parts,
              TableGradients gradients);

  const RowPartitionRun run_;
  std::vector<RowSection> sections_;
  size_t num_applies_ = 0;
  size_t apply_bytes_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<uint8_t[]> payload_;  // [bytes_]
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_
