#include "core/client/exchange/outgoing_push.h"

#include <cstring>
#include <utility>

#include "core/wire/value_codec.h"

namespace keelson {
namespace {

// Blocks [begin, end) of the plan, those of one range.
struct Run {
  size_t begin;
  size_t end;
  size_t bytes = 0;
};

std::vector<Run> RunsOf(const PlannedMessage& plan) {
  std::vector<Run> runs;
  size_t begin = 0;
  for (const BlockRange& range : plan.ranges) {
    Run run{begin, begin + range.num_blocks};
    for (size_t b = run.begin; b < run.end; ++b) run.bytes += PushBytes(plan.blocks[b]);
    begin = run.end;
    runs.push_back(run);
  }
  return runs;
}

bool InPlace(const PlannedMessage& plan, const Run& run) {
  return plan.blocks[run.begin].push == WireFormat::kFloat32 &&
         run.bytes >= OutgoingPush::kSmallestInPlace;
}

}  // namespace

OutgoingPush::OutgoingPush(const PlannedMessage* plan, BulkRequest request,
                           const ParameterArrays& gradients, std::shared_ptr<const void> owner)
    : plan_(plan), request_(std::move(request)) {
  sent_->gradients = std::move(owner);
  request_.ranges = plan->ranges;
  if (gradients.elements.empty()) {
    LayOutBytes(gradients.bytes);
  } else {
    LayOutElements(gradients.elements);
  }
}

OutgoingPush::~OutgoingPush() { Release(sent_); }

// Blocks without padding between them are one piece.
void OutgoingPush::LayOutBytes(absl::Span<const absl::Span<uint8_t>> gradients) {
  for (const PlannedBlock& block : plan_->blocks) {
    const uint8_t* from = gradients[block.variable].data() + block.push_offset;
    const bool joins = !pieces_.empty() && pieces_.back().data + pieces_.back().size == from;
    if (!joins) pieces_.push_back({from, 0});
    pieces_.back().size += PushBytes(block);
  }
}

void OutgoingPush::LayOutElements(absl::Span<const absl::Span<float>> gradients) {
  const std::vector<Run> runs = RunsOf(*plan_);
  size_t buffer_bytes = 0;
  for (const Run& run : runs) {
    if (!InPlace(*plan_, run)) buffer_bytes += run.bytes;
  }
  sent_->buffer.reset(new uint8_t[buffer_bytes]);
  uint8_t* to = sent_->buffer.get();
  bool joins = false;  // the last piece ends at `to`
  for (const Run& run : runs) {
    const PlannedBlock& first = plan_->blocks[run.begin];
    const float* array = gradients[first.variable].data();
    if (InPlace(*plan_, run)) {
      pieces_.push_back({reinterpret_cast<const uint8_t*>(array + first.first_element), run.bytes});
      joins = false;
      continue;
    }
    if (!joins) pieces_.push_back({to, 0});
    pieces_.back().size += run.bytes;
    joins = true;
    for (size_t b = run.begin; b < run.end; ++b) {
      const PlannedBlock& block = plan_->blocks[b];
      copied_.push_back({&block, array + block.first_element, to});
      to += PushBytes(block);
    }
  }
}

void OutgoingPush::Encode(const PushStamp& stamp, absl::Span<std::vector<float>> residuals) {
  const Aggregation aggregation = stamp.aggregation.value_or(Aggregation());
  request_.sequence = stamp.sequence;
  request_.step = stamp.step;
  request_.pulled_shard_step = stamp.pulled_shard_step;
  request_.unseen_pushes = stamp.unseen_pushes;
  request_.attempt = aggregation.attempt;
  request_.round = aggregation.round;
  request_.weight = aggregation.weight;
  request_.last_part = stamp.last_part;
  rows_ = stamp.rows;
  request_.rows.clear();
  if (rows_ != nullptr) request_.rows.assign(rows_->sections().begin(), rows_->sections().end());
  sent_->header = EncodeBulkRequest(request_, plan_->push_bytes + RowBytes());
  for (const Copied& copied : copied_) EncodeBlock(copied, residuals);
}

void OutgoingPush::EncodeBlock(const Copied& copied, absl::Span<std::vector<float>> residuals) {
  const PlannedBlock& block = *copied.block;
  const size_t size = block.num_elements;
  const absl::Span<const float> from(copied.from, size);
  if (block.push == WireFormat::kFloat32) {
    std::memcpy(copied.to, copied.from, size * sizeof(float));
    return;
  }
  if (IsElementwise(block.push)) {
    EncodeElements(block.push, from, copied.to);
    return;
  }
  std::vector<float>& all = residuals[block.variable];
  const absl::Span<float> residual(all.data() + block.first_element, size);
  if (block.push == WireFormat::kInt8) {
    EncodeInt8(from, residual, copied.to);
    return;
  }
  top_k_.clear();
  EncodeTopK(from, block.top_k_count, residual, &top_k_);
  std::memcpy(copied.to, top_k_.data(), top_k_.size());
}

size_t OutgoingPush::RowBytes() const { return rows_ == nullptr ? 0 : rows_->bytes(); }

size_t OutgoingPush::size() const { return sent_->header.size() + plan_->push_bytes + RowBytes(); }

ByteRope OutgoingPush::Rope() {
  ByteRope rope;
  const std::string& header = sent_->header;
  rope.Append(Hold({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  for (const Piece& piece : pieces_) rope.Append(Hold(piece));
  if (RowBytes() > 0) rope.Append(RowMessage::Payload(rows_));
  return rope;
}

Fragment OutgoingPush::Hold(Piece piece) {
  sent_->references.fetch_add(1, std::memory_order_relaxed);
  return {piece.data, piece.size, Pin(Release, sent_)};
}

void OutgoingPush::Release(void* user) {
  Sent* const sent = static_cast<Sent*>(user);
  if (sent->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete sent;
}

}  // namespace keelson
