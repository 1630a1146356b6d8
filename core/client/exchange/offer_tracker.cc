#include "core/client/exchange/offer_tracker.h"

namespace keelson {

OfferTracker::OfferTracker(const ShardPlans& plans, size_t num_variables)
    : messages_of_(num_variables), offered_(num_variables) {
  for (size_t s = 0; s < plans.size(); ++s) {
    for (size_t m = 0; m < plans[s].size(); ++m) {
      const size_t position = messages_.size();
      Tracked& message = messages_.emplace_back();
      message.id = {s, m};
      for (const PlannedBlock& block : plans[s][m].blocks) {
        std::vector<size_t>& known = messages_of_[block.variable];
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

const std::vector<MessageId>& OfferTracker::Offer(size_t variable) {
  complete_.clear();
  Count(variable);
  return complete_;
}

const std::vector<MessageId>& OfferTracker::OfferRest() {
  complete_.clear();
  for (size_t v = 0; v < offered_.size(); ++v) Count(v);
  return complete_;
}

void OfferTracker::Count(size_t variable) {
  if (offered_[variable]) return;
  offered_[variable] = true;
  for (const size_t m : messages_of_[variable]) {
    Tracked& message = messages_[m];
    if (--message.missing == 0) complete_.push_back(message.id);
  }
}

}  // namespace keelson
