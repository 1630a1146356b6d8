// One message of a push, encoded and ready to be sent repeatedly.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_OUTGOING_PUSH_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_OUTGOING_PUSH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/row_message.h"
#include "core/client/plan/transfer_plan.h"
#include "core/client/services/parameter_client.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// The fields of a push that describe it, beside its blocks.
struct PushStamp {
  uint64_t sequence = 0;
  int64_t step = 0;
  int64_t pulled_shard_step = 0;
  uint32_t unseen_pushes = 0;
  std::optional<Aggregation> aggregation;
  bool last_part = false;
  // What the message has of table rows; null: nothing.
  std::shared_ptr<const RowMessage> rows;
  // By variable, 1: it has no gradient in this step. Empty: all have one. Not with an aggregation.
  absl::Span<const uint8_t> absent = {};
};

// Large runs of float32 elements are sent in place; small ones are copied, and other formats
// encoded, into a buffer that is reused from step to step. Gradients that are bytes already are
// sent in place.
class OutgoingPush {
 public:
  // Runs of fewer bytes are copied.
  static constexpr size_t kSmallestInPlace = 16 * 1024;

  // `request` has the fields that are the same in each step, without the ranges. `plan` outlives
  // this. `owner` keeps the gradients' memory alive; null: it outlives this and every rope.
  OutgoingPush(const PlannedMessage* plan, BulkRequest request, const ParameterArrays& gradients,
               std::shared_ptr<const void> owner = nullptr);
  ~OutgoingPush();
  OutgoingPush(const OutgoingPush&) = delete;
  OutgoingPush& operator=(const OutgoingPush&) = delete;

  // Takes the blocks' gradients as they are now, but for those that are absent. `residuals`: per
  // variable, as large as the variable where its elements are encoded with error feedback. Nothing
  // is held().
  void Encode(const PushStamp& stamp, absl::Span<std::vector<float>> residuals);

  // Returns the encoded message, any number of times. A rope may outlive this.
  ByteRope Rope();
  size_t size() const;

  // Whether a fragment of a rope that has the caller's memory or this object's is still in use.
  // Thread-safe.
  bool held() const { return sent_->references.load(std::memory_order_acquire) > 1; }

 private:
  struct Piece {
    const uint8_t* data;
    size_t size;
  };
  // The memory of ropes: it lives as long as this and all fragments.
  struct Sent {
    std::atomic<int> references{1};
    std::string header;
    std::unique_ptr<uint8_t[]> buffer;
    std::shared_ptr<const void> gradients;
  };
  // A block that is copied or encoded into the buffer.
  struct Copied {
    const PlannedBlock* block;
    const float* from;
    uint8_t* to;
  };

  // Blocks of the plan with what they have in common.
  struct Run;

  size_t RowBytes() const;
  // Says in the request which ranges are absent. False: it says so already.
  bool MarkAbsent(absl::Span<const uint8_t> absent);
  // What is sent of the gradients that are not absent. Nothing is held().
  void LayOut();
  void LayOutElements(absl::Span<const Run> runs);
  void LayOutBytes(absl::Span<const Run> runs);
  std::vector<Run> RunsToSend() const;
  void EncodeBlock(const Copied& copied, absl::Span<std::vector<float>> residuals);
  Fragment Hold(Piece piece);
  static void Release(void* sent);

  const PlannedMessage* const plan_;
  const ParameterArrays gradients_;
  BulkRequest request_;
  std::shared_ptr<const RowMessage> rows_;
  Sent* const sent_ = new Sent();
  std::vector<Copied> copied_;
  std::vector<Piece> pieces_;  // of the payload
  size_t payload_bytes_ = 0;   // of them
  std::string top_k_;          // reused
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_OUTGOING_PUSH_H_
