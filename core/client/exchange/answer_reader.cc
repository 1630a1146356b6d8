#include "core/client/exchange/answer_reader.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/client/exchange/incoming_values.h"

namespace keelson {
namespace {

absl::Status Malformed(size_t shard, BulkMethod method, absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("ps-", shard, ": malformed answer to ", BulkMethodName(method), ": ", what));
}

}  // namespace

absl::Status AnswerReader::Receive(size_t slot, size_t shard, size_t message,
                                   const ByteRope& response) {
  ExchangeStep& step = calls_->step(slot);
  ShardRound& round = step.rounds[shard];
  const MessageCall& call = round.calls[message];
  const bool pull = call.method == BulkMethod::kPull;

  ByteCursor cursor(response);
  answer_ = {};
  const absl::StatusOr<size_t> payload =
      DecodeBulkResponse(&cursor, &answer_, calls_->PlanOf(shard, message).blocks.size());
  if (!payload.ok()) return Malformed(shard, call.method, payload.status().message());
  calls_->server(shard).credits = answer_.credits;
  NoteStore(shard, answer_.store_id);
  const absl::Status taken = TakeAnswer(slot, shard, message, &cursor);
  if (!taken.ok()) return Malformed(shard, call.method, taken.message());
  // The server counts a step with the last part of its push; the answers to other parts do not
  // include it.
  const bool counted = pull || message + 1 == round.calls.size();
  round.landed_shard_step =
      std::min(round.landed_shard_step, answer_.shard_step + (counted ? 0 : 1));
  step.result.staleness = std::max(step.result.staleness, answer_.staleness);
  step.result.bytes_pulled += static_cast<int64_t>(response.size());
  if (!pull) step.result.bytes_pushed += static_cast<int64_t>(call.push->size());
  return absl::OkStatus();
}

// Takes the values of the answer, if its call has any.
absl::Status AnswerReader::TakeAnswer(size_t slot, size_t shard, size_t message,
                                      ByteCursor* cursor) {
  MessageCall& call = calls_->CallOf(slot, shard, message);
  const bool pull = call.method == BulkMethod::kPull;
  if (call.method == BulkMethod::kPush) {
    const bool empty = answer_.blocks.empty() && answer_.rows.empty();
    if (empty && cursor->remaining() == 0) return absl::OkStatus();
    return absl::InternalError("expected no values");
  }
  // A pull that was made for another store may lack blocks that are new, so it is repeated.
  if (pull && call.asked_store != 0 && call.asked_store != answer_.store_id) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(TakeBlocksAndRows(slot, shard, message, cursor));
  call.landed = true;
  // A pull without blocks leaves the values as they are.
  if (!answer_.blocks.empty()) landings_->Landed({shard, message});
  return absl::OkStatus();
}

// The rows end the payload.
absl::Status AnswerReader::TakeBlocksAndRows(size_t slot, size_t shard, size_t message,
                                             ByteCursor* cursor) {
  const ExchangeStep& step = calls_->step(slot);
  const std::optional<size_t> rows = calls_->RowMessageOf(step, shard, message);
  uint64_t row_bytes = 0;
  if (rows.has_value()) {
    ASSIGN_OR_RETURN(row_bytes, step.rows->CheckAnswer(shard, *rows, answer_.rows));
  } else if (!answer_.rows.empty()) {
    return absl::InternalError("expected no rows");
  }
  if (row_bytes > cursor->remaining()) {
    return absl::InternalError(absl::StrCat("payload shorter than its rows: expected ", row_bytes,
                                            " bytes, found ", cursor->remaining()));
  }
  const bool planned = message < calls_->plans()[shard].size();
  RETURN_IF_ERROR(
      TakeValues(calls_->PlanOf(shard, message), answer_,
                 /*whole=*/step.rounds[shard].calls[message].method == BulkMethod::kPushPull,
                 cursor->remaining() - row_bytes, cursor,
                 slot == calls_->pull_slot() ? memory_->values() : memory_->landing(),
                 planned ? &calls_->server(shard).known_versions[message] : &no_versions_));
  if (!rows.has_value()) return absl::OkStatus();
  return step.rows->Take(shard, *rows, answer_.rows, answer_.store_id, cursor);
}

void AnswerReader::NoteStore(size_t shard, uint64_t store_id) {
  ServerState& server = calls_->server(shard);
  if (store_id == server.store_id) return;
  server.store_id = store_id;
  for (size_t m = 0; m < server.known_versions.size(); ++m) {
    std::vector<uint64_t>& versions = server.known_versions[m];
    std::fill(versions.begin(), versions.end(), 0);
    landings_->Void({shard, m});
  }
  for (ExchangeStep& step : calls_->steps()) step.rounds[shard].store_changed = true;
}

// Whether nothing that the step brought from the shard is of another store.
bool AnswerReader::Current(const ExchangeStep& step, size_t shard) const {
  const ServerState& server = calls_->server(shard);
  return AllKnown(server) && (step.rows == nullptr || step.rows->AllFrom(shard, server.store_id));
}

}  // namespace keelson
