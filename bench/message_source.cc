#include "bench/message_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/gradients.h"
#include "bench/message_plan.h"
#include "core/base/status_macros.h"
#include "core/client/exchange/incoming_values.h"
#include "core/client/exchange/outgoing_push.h"
#include "core/cluster/task_proto.h"
#include "core/tensor/aligned_buffer.h"

namespace keelson::bench {
namespace {

// One array per variable of a placement.
class Arrays {
 public:
  explicit Arrays(const Placement& placement) {
    for (const VariableSpec& variable : placement.variables()) {
      buffers_.emplace_back(variable.shape.num_elements());
      spans_.push_back(buffers_.back().span());
    }
  }

  absl::Span<const absl::Span<float>> spans() const { return spans_; }

 private:
  std::vector<AlignedBuffer> buffers_;
  std::vector<absl::Span<float>> spans_;
};

BulkRequest BulkRequestOf(const LoadPlan& plan) {
  BulkRequest request;
  request.role = TaskToProto({Role::kWorker, 0}).role();
  request.incarnation = plan.membership().incarnation;
  request.membership_secret = plan.membership().secret;
  request.placement_fingerprint = plan.placement.Fingerprint();
  return request;
}

class PushSource : public MessageSource {
 public:
  explicit PushSource(const LoadPlan& plan)
      : plans_(PlanMessages(plan)), gradients_(plan.placement), shards_(plans_.size()) {
    for (const absl::Span<float> gradient : gradients_.spans()) FillGradient(gradient);
    for (const auto& gradient : gradients_.spans()) residuals_.emplace_back(gradient.size());
    const BulkRequest request = BulkRequestOf(plan);
    for (size_t s = 0; s < plans_.size(); ++s) {
      for (const PlannedMessage& message : plans_[s]) {
        BulkRequest push = request;
        push.last_part = &message == &plans_[s].back();
        shards_[s].push_back(std::make_unique<OutgoingPush>(
            &message, std::move(push), ParameterArrays{gradients_.spans(), {}}));
      }
      sequences_.emplace_back(plans_[s].size());
    }
  }

  BulkMethod method() const override { return BulkMethod::kPush; }
  size_t num_messages(size_t shard) const override { return PlansOf(shard).size(); }
  size_t pushed_bytes(size_t shard, size_t message) const override {
    return PlansOf(shard)[message].push_bytes;
  }

  ByteRope Request(size_t shard, size_t message) override {
    OutgoingPush* const push = shards_[shard][message].get();
    const uint64_t sequence = ++sequences_[shard][message];
    PushStamp stamp;
    stamp.sequence = sequence;
    stamp.step = static_cast<int64_t>(sequence);
    push->Encode(stamp, absl::MakeSpan(residuals_));
    return push->Rope();
  }

  absl::StatusOr<size_t> Take(size_t, size_t, const ByteRope& response) override {
    ByteCursor cursor(response);
    BulkResponse answer;
    RETURN_IF_ERROR(DecodeBulkResponse(&cursor, &answer).status());
    if (answer.duplicate_blocks > 0)
      return absl::InternalError("a push was taken for a repetition");
    return 0;
  }

 private:
  const std::vector<PlannedMessage>& PlansOf(size_t shard) const { return plans_[shard]; }

  const ShardPlans plans_;
  Arrays gradients_;
  std::vector<std::vector<float>> residuals_;
  // Per shard and message.
  std::vector<std::vector<std::unique_ptr<OutgoingPush>>> shards_;
  std::vector<std::vector<uint64_t>> sequences_;
};

class PullSource : public MessageSource {
 public:
  explicit PullSource(const LoadPlan& plan)
      : plans_(PlanMessages(plan)), values_(plan.placement), requests_(plans_.size()) {
    BulkRequest request = BulkRequestOf(plan);
    for (size_t s = 0; s < plans_.size(); ++s) {
      for (const PlannedMessage& message : plans_[s]) {
        request.ranges = message.ranges;
        for (BlockRange& range : request.ranges) range.format = range.pull_format;
        requests_[s].push_back(EncodeBulkRequest(request, 0));
      }
    }
  }

  BulkMethod method() const override { return BulkMethod::kPull; }
  size_t num_messages(size_t shard) const override { return RequestsOf(shard).size(); }
  size_t pushed_bytes(size_t, size_t) const override { return 0; }

  ByteRope Request(size_t shard, size_t message) override {
    ByteRope rope;
    rope.AppendCopy(RequestsOf(shard)[message]);
    return rope;
  }

  absl::StatusOr<size_t> Take(size_t shard, size_t message, const ByteRope& response) override {
    const PlannedMessage& plan = plans_[shard][message];
    ByteCursor cursor(response);
    ASSIGN_OR_RETURN(const size_t payload_bytes, DecodeBulkResponse(&cursor, &answer_));
    versions_.resize(plan.blocks.size());
    RETURN_IF_ERROR(TakeValues(plan, answer_, /*whole=*/true, payload_bytes, &cursor,
                               {values_.spans(), {}}, &versions_));
    return payload_bytes;
  }

 private:
  const std::vector<std::string>& RequestsOf(size_t shard) const { return requests_[shard]; }

  const ShardPlans plans_;
  Arrays values_;
  std::vector<std::vector<std::string>> requests_;  // per shard and message
  BulkResponse answer_;                             // reused
  std::vector<uint64_t> versions_;                  // not looked at
};

class KeyValueSource : public MessageSource {
 public:
  explicit KeyValueSource(const LoadPlan& plan)
      : shards_(plan.placement.num_shards()),
        keys_(kKeys),
        values_(kKeys),
        keys_per_message_(plan.scenario.message_bytes / kPairBytes),
        request_(BulkRequestOf(plan)) {
    for (size_t i = 0; i < kKeys; ++i) keys_[i] = i;
    FillGradient(absl::MakeSpan(values_));
  }

  BulkMethod method() const override { return BulkMethod::kPush; }
  size_t num_messages(size_t) const override {
    return (KeysPerShard() + keys_per_message_ - 1) / keys_per_message_;
  }
  size_t pushed_bytes(size_t shard, size_t message) const override {
    return KeysOf(shard, message).second * kPairBytes;
  }

  ByteRope Request(size_t shard, size_t message) override {
    const auto [first, count] = KeysOf(shard, message);
    ++request_.sequence;
    ByteRope rope;
    rope.AppendOwned(EncodeBulkRequest(request_, count * kPairBytes));
    rope.AppendBorrowed(keys_.data() + first, count * sizeof(uint64_t));
    rope.AppendBorrowed(values_.data() + first, count * sizeof(float));
    return rope;
  }

  absl::StatusOr<size_t> Take(size_t, size_t, const ByteRope&) override { return 0; }

 private:
  static constexpr size_t kKeys = 10'000'000;
  static constexpr size_t kPairBytes = sizeof(uint64_t) + sizeof(float);

  size_t KeysPerShard() const { return kKeys / shards_; }

  // First and count.
  std::pair<size_t, size_t> KeysOf(size_t shard, size_t message) const {
    const size_t end = KeysPerShard() * (shard + 1);
    const size_t first = KeysPerShard() * shard + message * keys_per_message_;
    return {first, std::min(keys_per_message_, end - first)};
  }

  const size_t shards_;
  std::vector<uint64_t> keys_;
  std::vector<float> values_;
  const size_t keys_per_message_;
  BulkRequest request_;
};

}  // namespace

std::unique_ptr<MessageSource> MakePushSource(const LoadPlan& plan) {
  return std::make_unique<PushSource>(plan);
}

std::unique_ptr<MessageSource> MakePullSource(const LoadPlan& plan) {
  return std::make_unique<PullSource>(plan);
}

std::unique_ptr<MessageSource> MakeKeyValueSource(const LoadPlan& plan) {
  return std::make_unique<KeyValueSource>(plan);
}

}  // namespace keelson::bench
