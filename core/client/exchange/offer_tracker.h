// Tracks which messages of a step have all their gradients.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_OFFER_TRACKER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_OFFER_TRACKER_H_

#include <vector>

#include "core/client/plan/transfer_plan.h"

namespace keelson {

// Not thread-safe.
class OfferTracker {
 public:
  OfferTracker(const ShardPlans& plans, size_t num_variables);

  // Begins a step: nothing is complete.
  void Reset();

  // The messages that the variable's gradient completes, by shard and then in plan order. A
  // variable that was offered before completes nothing. Valid until the next call.
  const std::vector<MessageId>& Offer(size_t variable);
  bool offered(size_t variable) const { return offered_[variable]; }
  // Offers all variables that have not been offered.
  const std::vector<MessageId>& OfferRest();

 private:
  struct Tracked {
    MessageId id;
    int variables = 0;  // different ones
    int missing = 0;    // of them
  };

  void Count(size_t variable);

  std::vector<Tracked> messages_;
  std::vector<std::vector<size_t>> messages_of_;  // per variable, positions in messages_
  std::vector<bool> offered_;
  std::vector<MessageId> complete_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_OFFER_TRACKER_H_
