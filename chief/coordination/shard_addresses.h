// Where the shards are reached, which may change while members work.
#ifndef KEELSON_CHIEF_COORDINATION_SHARD_ADDRESSES_H_
#define KEELSON_CHIEF_COORDINATION_SHARD_ADDRESSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chief/coordination/coordinator_state.h"

namespace keelson {

// The addresses by shard; 0: training has not started, and there are none.
struct VersionedAddresses {
  uint64_t version = 0;
  std::vector<std::string> addresses;
};

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes. Members learn of a change with the next answer to a heartbeat or to a request for work.
class ShardAddresses {
 public:
  // `state` outlives this.
  explicit ShardAddresses(CoordinatorState* state) : state_(state) {}

  // From now on the shards are reached there: one address for each of the placement's, in order.
  // Without effect when nothing differs. They stay when training starts over. Call it after
  // training has started.
  void Set(std::vector<std::string> addresses);

  // What a member that knows `version` must be told: the newest version, with the addresses unless
  // that is the one.
  VersionedAddresses NewsFor(uint64_t version) const;

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_SHARD_ADDRESSES_H_
