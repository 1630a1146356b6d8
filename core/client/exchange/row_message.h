// What one message has of table rows, encoded and ready to be sent repeatedly.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/client/plan/row_plan.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

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
  size_t bytes() const { return payload_.size(); }
  size_t read_bytes() const { return payload_.size() - apply_bytes_; }

  // The bytes of all sections, and of the reads alone, as a fragment that keeps `message` alive.
  static Fragment Payload(std::shared_ptr<const RowMessage> message);
  static Fragment ReadPayload(std::shared_ptr<const RowMessage> message);

 private:
  RowSection* AddSection(const BatchIds& batch, size_t table);
  void AddApplies(absl::Span<const PlannedTable> tables, const BatchIds& applied,
                  TableGradients gradients);

  const RowPartitionRun run_;
  std::vector<RowSection> sections_;
  size_t num_applies_ = 0;
  size_t apply_bytes_ = 0;
  std::string payload_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_ROW_MESSAGE_H_
