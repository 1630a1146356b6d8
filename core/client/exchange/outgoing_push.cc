#include "core/client/exchange/outgoing_push.h"

#include <cstring>
#include <utility>

#include "core/wire/value_codec.h"

namespace keelson {
namespace {

bool InPlace(const PlannedBlock& first, size_t run_bytes) {
  return first.push == WireFormat::kFloat32 && run_bytes >= OutgoingPush::kSmallestInPlace;
}

}  // namespace

// Blocks [begin, end) of the plan, those of one range, which are of one variable.
struct OutgoingPush::Run {
  size_t begin;
  size_t end;
  size_t bytes;
};

OutgoingPush::OutgoingPush(const PlannedMessage* plan, BulkRequest request,
                           const ParameterArrays& gradients, std::shared_ptr<const void> owner)
    : plan_(plan), gradients_(gradients), request_(std::move(request)) {
  sent_->gradients = std::move(owner);
  request_.ranges = plan->ranges;
  LayOut();
}

OutgoingPush::~OutgoingPush() { Release(sent_); }

std::vector<OutgoingPush::Run> OutgoingPush::RunsToSend() const {
  std::vector<Run> runs;
  size_t begin = 0;
  for (const BlockRange& range : request_.ranges) {
    Run run{begin, begin + range.num_blocks, 0};
    begin = run.end;
    if (range.absent) continue;
    for (size_t b = run.begin; b < run.end; ++b) run.bytes += PushBytes(plan_->blocks[b]);
    runs.push_back(run);
  }
  return runs;
}

bool OutgoingPush::MarkAbsent(absl::Span<const uint8_t> absent) {
  bool changed = false;
  size_t block = 0;
  for (BlockRange& range : request_.ranges) {
    const bool is_absent = !absent.empty() && absent[plan_->blocks[block].variable] != 0;
    changed |= is_absent != range.absent;
    range.absent = is_absent;
    block += range.num_blocks;
  }
  return changed;
}

void OutgoingPush::LayOut() {
  copied_.clear();
  pieces_.clear();
  const std::vector<Run> runs = RunsToSend();
  if (gradients_.elements.empty()) {
    LayOutBytes(runs);
  } else {
    LayOutElements(runs);
  }
  payload_bytes_ = 0;
  for (const Piece& piece : pieces_) payload_bytes_ += piece.size;
}

// Blocks without padding between them are one piece.
void OutgoingPush::LayOutBytes(absl::Span<const Run> runs) {
  for (const Run& run : runs) {
    for (size_t b = run.begin; b < run.end; ++b) {
      const PlannedBlock& block = plan_->blocks[b];
      const uint8_t* from = gradients_.bytes[block.variable].data() + block.push_offset;
      const bool joins = !pieces_.empty() && pieces_.back().data + pieces_.back().size == from;
      if (!joins) pieces_.push_back({from, 0});
      pieces_.back().size += PushBytes(block);
    }
  }
}

void OutgoingPush::LayOutElements(absl::Span<const Run> runs) {
  const auto in_place = [this](const Run& run) {
    return InPlace(plan_->blocks[run.begin], run.bytes);
  };
  size_t buffer_bytes = 0;
  for (const Run& run : runs) {
    if (!in_place(run)) buffer_bytes += run.bytes;
  }
  sent_->buffer.reset(new uint8_t[buffer_bytes]);
  uint8_t* to = sent_->buffer.get();
  bool joins = false;  // the last piece ends at `to`
  for (const Run& run : runs) {
    const PlannedBlock& first = plan_->blocks[run.begin];
    const float* array = gradients_.elements[first.variable].data();
    if (in_place(run)) {
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
  request_.order = aggregation.order;
  request_.last_part = stamp.last_part;
  rows_ = stamp.rows;
  request_.rows.clear();
  if (rows_ != nullptr) request_.rows.assign(rows_->sections().begin(), rows_->sections().end());
  if (MarkAbsent(stamp.absent)) LayOut();
  sent_->header = EncodeBulkRequest(request_, payload_bytes_ + RowBytes());
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

size_t OutgoingPush::size() const { return sent_->header.size() + payload_bytes_ + RowBytes(); }

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
