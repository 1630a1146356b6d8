// What a BulkExchange remembers of its steps and servers.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/client/exchange/outgoing_push.h"
#include "core/client/services/parameter_client.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// One message of one step.
struct MessageCall {
  enum class State {
    kIncomplete,  // gradients are missing
    kReady,
    kInFlight,
    kPausing,  // before it is repeated
    kDone,
  };

  State state = State::kIncomplete;
  BulkMethod method = BulkMethod::kPushPull;
  // Steps only; encoded at the first attempt.
  std::unique_ptr<OutgoingPush> push;
  bool attempted = false;
  // Its values have been written to the landing memory in this step.
  bool landed = false;
  // The server's store that a pull's known versions are of.
  uint64_t asked_store = 0;
  absl::Duration first_start;  // of the clock
  absl::Duration pause;
  absl::Duration retry_at;  // real time
};

// The messages of one step at one server.
struct ShardRound {
  std::vector<MessageCall> calls;
  size_t next = 0;  // first one that was never sent
  size_t done = 0;
  // The messages are pulled, after the server was initialised anew within the step.
  bool pulling = false;
  bool store_changed = false;
  // Of the values that the step was computed from, and of those that it brought.
  int64_t pulled_shard_step = 0;
  int64_t landed_shard_step = std::numeric_limits<int64_t>::max();
};

struct ExchangeStep {
  int slot = 0;
  bool active = false;  // from BeginStep or BeginPull to Publish
  bool landed = false;  // all is answered
  bool reset = false;   // connections were given up for the sake of its gradients
  uint64_t sequence = 0;
  std::optional<Aggregation> aggregation;
  std::vector<ShardRound> rounds;
  size_t rounds_done = 0;
  std::optional<absl::Duration> first_ready;
  std::optional<absl::Duration> held_since;
  PushResult result;
};

struct ServerState {
  uint64_t store_id = 0;
  // Per message and block, of that store; 0: not known.
  std::vector<std::vector<uint64_t>> known_versions;
  // Of the values that the caller sees.
  int64_t shard_step = 0;
  uint32_t credits = 0;
  int in_flight = 0;
  absl::Duration reported;
};

// What a tag of the transport stands for.
struct CallId {
  int slot = 0;
  int shard = 0;
  int message = 0;
};
uint64_t ToTag(CallId id);
CallId FromTag(uint64_t tag);

// All messages from the start, by `method`.
void StartRound(BulkMethod method, MessageCall::State state, ShardRound* round);

// Whether a transport holds gradients.
bool AnyHeld(const ShardRound& round);
bool AnyHeld(const ExchangeStep& step);

// Whether all blocks of the shard are known.
bool AllKnown(const ServerState& server);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_STATE_H_
