#include "core/client/exchange/offer_tracker.h"

namespace keelson {

OfferTracker::OfferTracker(const ShardPlans& plans, int num_variables)
    : messages_of_(static_cast<size_t>(num_variables)),
      offered_(static_cast<size_t>(num_variables)) {
  for (size_t s = 0; s < plans.size(); ++s) {
    for (size_t m = 0; m < plans[s].size(); ++m) {
      const int position = static_cast<int>(messages_.size());
      Tracked& message = messages_.emplace_back();
      message.id = {static_cast<int>(s), static_cast<int>(m)};
      for (const PlannedBlock& block : plans[s][m].blocks) {
        std::vector<int>& known = messages_of_[static_cast<size_t>(block.variable)];
        if (!known.empty() && known.back() == position) continue;
        known.push_back(position);
        ++message.variables;
      }
    }
  }
  Reset();
}

void OfferTracker::Reset() {
  offered_.assign(offered_.size(), false);
  for (Tracked& message : messages_) message.missing = message.variables;
}

const std::vector<MessageId>& OfferTracker::Offer(int variable) {
  complete_.clear();
  Count(variable);
  return complete_;
}

const std::vector<MessageId>& OfferTracker::OfferRest() {
  complete_.clear();
  for (size_t v = 0; v < offered_.size(); ++v) Count(static_cast<int>(v));
  return complete_;
}

void OfferTracker::Count(int variable) {
  const auto v = static_cast<size_t>(variable);
  if (offered_[v]) return;
  offered_[v] = true;
  for (const int m : messages_of_[v]) {
    Tracked& message = messages_[static_cast<size_t>(m)];
    if (--message.missing == 0) complete_.push_back(message.id);
  }
}

}  // namespace keelson
