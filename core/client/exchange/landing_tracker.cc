#include "core/client/exchange/landing_tracker.h"

namespace keelson {

LandingTracker::LandingTracker(const ShardPlans& plans, size_t num_variables)
    : num_messages_(num_variables) {
  for (const std::vector<PlannedMessage>& plan : plans) {
    std::vector<Tracked>& shard = messages_.emplace_back();
    for (const PlannedMessage& message : plan) {
      std::vector<size_t>& variables = shard.emplace_back().variables;
      for (const PlannedBlock& block : message.blocks) {
        if (!variables.empty() && variables.back() == block.variable) continue;
        variables.push_back(block.variable);
        ++num_messages_[block.variable];
      }
    }
  }
  missing_ = num_messages_;
}

void LandingTracker::Reset() {
  missing_ = num_messages_;
  complete_.clear();
  for (std::vector<Tracked>& shard : messages_) {
    for (Tracked& message : shard) message.landed = false;
  }
}

LandingTracker::Tracked& LandingTracker::At(MessageId id) {
  return messages_[id.shard][id.message];
}

void LandingTracker::Landed(MessageId id) {
  Void(id);
  Tracked& message = At(id);
  message.landed = true;
  for (const size_t v : message.variables) {
    if (--missing_[v] == 0) complete_.push_back(v);
  }
}

void LandingTracker::Void(MessageId id) {
  Tracked& message = At(id);
  if (!message.landed) return;
  message.landed = false;
  for (const size_t v : message.variables) {
    ++missing_[v];
    std::erase(complete_, v);
  }
}

std::optional<size_t> LandingTracker::Take() {
  if (complete_.empty()) return std::nullopt;
  const size_t variable = complete_.front();
  complete_.pop_front();
  return variable;
}

}  // namespace keelson
