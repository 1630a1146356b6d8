// Which connections of unknown callers gRPC gets, and when.
#ifndef KEELSON_CORE_RPC_HAND_OVER_QUEUE_H_
#define KEELSON_CORE_RPC_HAND_OVER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace keelson {

// gRPC handles what its connections bring one event after the other. A thousand connections that
// somebody opens at once would therefore delay each member's call by the time that it takes to set
// all of them up. So an address has few unknown connections at a time that gRPC has only just got,
// and few that stay unknown there; its others wait. A connection that becomes known makes room at
// once, so members of one address wait for milliseconds. Not thread-safe.
class HandOverQueue {
 public:
  struct Limits {
    // Unknown connections of one address that were handed over less than `introduction` ago.
    size_t at_once = 16;
    absl::Duration introduction = absl::Seconds(1);
    // Unknown connections of one address that gRPC has, however long. When there is one too many,
    // the next one waits for `pause`.
    size_t of_address = 64;
    absl::Duration pause = absl::Milliseconds(250);
  };

  explicit HandOverQueue(const Limits& limits) : limits_(limits) {}

  // The connection waits to be handed over. Each id comes once.
  void Add(const std::string& address, uint64_t id);

  struct Next {
    uint64_t id = 0;
    // The unknown connection of this address that gRPC has had for longest, which has to be closed
    // because there is one too many. It no longer counts.
    std::optional<uint64_t> displaced;
  };
  // The connection to hand over now, or nothing: none waits for which there is room. Addresses take
  // turns; of one address the first comes first.
  std::optional<Next> Take(absl::Time now);

  // The connection is known or closed: it neither waits nor counts.
  void Remove(const std::string& address, uint64_t id);

  // Connections of the address wait until then, at least.
  void Delay(const std::string& address, absl::Time until);

  bool waiting() const { return !turns_.empty(); }
  // When Take may return something next, if nothing is added or removed before; InfiniteFuture:
  // nothing waits.
  absl::Time NextRoom() const;

 private:
  struct HandedOver {
    uint64_t id;
    absl::Time at;
  };
  struct Address {
    std::deque<uint64_t> waiting;
    std::vector<HandedOver> handed_over;  // the earliest first
  };

  // InfinitePast: there is room.
  absl::Time RoomAt(const std::string& name, const Address& address) const;

  const Limits limits_;
  std::map<std::string, Address> addresses_;  // those with connections
  std::deque<std::string> turns_;             // the addresses with waiting connections
  std::map<std::string, absl::Time> delayed_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_HAND_OVER_QUEUE_H_
