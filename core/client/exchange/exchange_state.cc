#include "core/client/exchange/exchange_state.h"

#include <algorithm>

namespace keelson {

uint64_t ToTag(CallId id) {
  return uint64_t{id.slot} << 56 | uint64_t{id.shard} << 32 | id.message;
}

CallId FromTag(uint64_t tag) { return {tag >> 56, tag >> 32 & 0xffffff, tag & 0xffffffff}; }

void StartRound(BulkMethod method, MessageCall::State state, ShardRound* round) {
  round->next = 0;
  round->done = 0;
  round->landed_shard_step = std::numeric_limits<int64_t>::max();
  for (MessageCall& call : round->calls) {
    call.state = state;
    call.method = method;
    call.attempted = false;
  }
}

bool AnyHeld(const ShardRound& round) {
  return std::any_of(round.calls.begin(), round.calls.end(), [](const MessageCall& call) {
    return call.push != nullptr && call.push->held();
  });
}

bool AnyHeld(const ExchangeStep& step) {
  return std::any_of(step.rounds.begin(), step.rounds.end(),
                     [](const ShardRound& round) { return AnyHeld(round); });
}

bool AllKnown(const ServerState& server) {
  return std::all_of(server.known_versions.begin(), server.known_versions.end(),
                     [](const std::vector<uint64_t>& versions) {
                       return std::find(versions.begin(), versions.end(), 0) == versions.end();
                     });
}

}  // namespace keelson
