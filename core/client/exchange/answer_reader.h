// Reads the servers' answers in an exchange: where their values and rows go, and what they tell of
// the server.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_ANSWER_READER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_ANSWER_READER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/client/exchange/exchange_calls.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/exchange_state.h"
#include "core/client/exchange/landing_tracker.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Not thread-safe.
class AnswerReader {
 public:
  // All outlive this.
  AnswerReader(ExchangeCalls* calls, ExchangeMemory* memory, LandingTracker* landings)
      : calls_(calls), memory_(memory), landings_(landings) {}

  // Takes what the message's answer brings. INTERNAL: it is malformed.
  absl::Status Receive(size_t slot, size_t shard, size_t message, const ByteRope& response);
  // Whether nothing that the step brought from the shard is of another store.
  bool Current(const ExchangeStep& step, size_t shard) const;

 private:
  absl::Status TakeAnswer(size_t slot, size_t shard, size_t message, ByteCursor* cursor);
  absl::Status TakeBlocksAndRows(size_t slot, size_t shard, size_t message, ByteCursor* cursor);
  void NoteStore(size_t shard, uint64_t store_id);

  ExchangeCalls* const calls_;
  ExchangeMemory* const memory_;
  LandingTracker* const landings_;
  BulkResponse answer_;                // reused
  std::vector<uint64_t> no_versions_;  // of no blocks
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_ANSWER_READER_H_
