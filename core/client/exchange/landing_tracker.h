// Tracks which variables' values have arrived completely within a step.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_LANDING_TRACKER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_LANDING_TRACKER_H_

#include <deque>
#include <optional>
#include <vector>

#include "core/client/plan/transfer_plan.h"

namespace keelson {

// Not thread-safe.
class LandingTracker {
 public:
  LandingTracker(const ShardPlans& plans, size_t num_variables);

  // Begins a step: nothing has landed.
  void Reset();

  // The values of a message have arrived; a repeated call says that they have changed since.
  void Landed(MessageId id);
  // The values of a message must not be used: others will follow.
  void Void(MessageId id);

  // A variable whose messages have all landed, and that was not taken since the last of them did;
  // in the order in which they became complete.
  std::optional<size_t> Take();

 private:
  struct Tracked {
    std::vector<size_t> variables;  // different ones
    bool landed = false;
  };
  Tracked& At(MessageId id);

  std::vector<std::vector<Tracked>> messages_;  // by shard
  std::vector<int> num_messages_;               // per variable
  std::vector<int> missing_;                    // of them
  std::deque<size_t> complete_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_LANDING_TRACKER_H_
