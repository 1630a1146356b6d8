// The state that a BulkExchange keeps of its steps and servers.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/client/exchange/outgoing_push.h"
#include "core/client/exchange/row_transfer.h"
#include "core/client/services/parameter_client.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// One message of one step.
struct MessageCall {
  enum class State {
    kIncomplete,  // gradients of blocks or of rows are missing
    kReady,
    kInFlight,
    kPausing,  // before it is repeated
    kDone,
  };

  State state = State::kIncomplete;
  // While kIncomplete: all of its blocks' gradients are complete, or its rows are missing.
  bool blocks_ready = false;
  bool awaits_rows = false;
  BulkMethod method = BulkMethod::kPushPull;
  // Steps only; encoded at the first attempt.
  std::unique_ptr<OutgoingPush> push;
  bool attempted = false;
  // While kInFlight: the shard has gone to another server since, and the message does too, whatever
  // comes of this call.
  bool redirected = false;
  // Its values have been written to the landing memory in this step.
  bool landed = false;
  // The newest push that was in the message's values when the step began.
  uint64_t base_sequence = 0;
  // The id of the server's store to which a pull's known versions belong.
  uint64_t asked_store = 0;
  // A pull's that waits for a step: how long the next call may take.
  absl::Duration patience;
  absl::Duration first_start;  // of the clock
  absl::Duration pause;
  absl::Duration retry_at;  // real time
};

// The messages of one step at one server: those of the plan, then those that have rows alone.
struct ShardRound {
  std::vector<MessageCall> calls;
  size_t next = 0;  // first one that was never sent
  size_t done = 0;
  // The messages are pulled, because the server was initialised again during the step.
  bool pulling = false;
  bool store_changed = false;
  // The shard's step of the values from which the step was computed, and of those that its answers
  // brought.
  int64_t pulled_shard_step = 0;
  int64_t landed_shard_step = std::numeric_limits<int64_t>::max();
};

struct ExchangeStep {
  size_t slot = 0;
  bool active = false;  // from BeginStep or BeginPull to Publish
  bool landed = false;  // all messages are answered
  bool reset = false;   // connections were reset to release its gradients
  uint64_t sequence = 0;
  // The step that the values of a pull are for; 0: it takes them as they are.
  int64_t values_for = 0;
  // Whether that step is still to be computed; null: it is.
  ParameterClient::StillWanted wanted;
  std::optional<Aggregation> aggregation;
  // By variable, 1: the step has no gradient of it. Empty: it has all.
  std::vector<uint8_t> absent;
  std::shared_ptr<RowTransfer> rows;  // null: not yet known, or the job has no tables
  std::vector<ShardRound> rounds;
  size_t rounds_done = 0;
  std::optional<absl::Duration> first_ready;
  std::optional<absl::Duration> held_since;
  PushResult result;
};

struct ServerState {
  uint64_t store_id = 0;
  // The known version in that store, per message and block; 0 if unknown.
  std::vector<std::vector<uint64_t>> known_versions;
  // Per message: the newest push that is in the values that the caller reads.
  std::vector<uint64_t> value_sequences;
  // The shard's step of the values that the caller reads.
  int64_t shard_step = 0;
  uint32_t credits = 0;
  int in_flight = 0;
  absl::Duration reported;
};

// The call that a tag of the transport identifies.
struct CallId {
  size_t slot = 0;
  size_t shard = 0;
  size_t message = 0;
};
uint64_t ToTag(CallId id);
CallId FromTag(uint64_t tag);

// Prepares all messages to be sent by `method`.
void StartRound(BulkMethod method, MessageCall::State state, ShardRound* round);

// Whether a transport holds gradients.
bool AnyHeld(const ShardRound& round);
bool AnyHeld(const ExchangeStep& step);

// Whether a version of every block of the shard is known.
bool AllKnown(const ServerState& server);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_
