#include "core/client/exchange/landing_tracker.h"

namespace keelson {

LandingTracker::LandingTracker(const ShardPlans& plans, int num_variables)
    : num_messages_(static_cast<size_t>(num_variables)) {
  for (const std::vector<PlannedMessage>& plan : plans) {
    std::vector<Tracked>& shard = messages_.emplace_back();
    for (const PlannedMessage& message : plan) {
      std::vector<int>& variables = shard.emplace_back().variables;
      for (const PlannedBlock& block : message.blocks) {
        if (!variables.empty() && variables.back() == block.variable) continue;
        variables.push_back(block.variable);
        ++num_messages_[static_cast<size_t>(block.variable)];
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
  return messages_[static_cast<size_t>(id.shard)][static_cast<size_t>(id.message)];
}

void LandingTracker::Landed(MessageId id) {
  Void(id);
  Tracked& message = At(id);
  message.landed = true;
  for (const int v : message.variables) {
    if (--missing_[static_cast<size_t>(v)] == 0) complete_.push_back(v);
  }
}

void LandingTracker::Void(MessageId id) {
  Tracked& message = At(id);
  if (!message.landed) return;
  message.landed = false;
  for (const int v : message.variables) {
    ++missing_[static_cast<size_t>(v)];
    std::erase(complete_, v);
  }
}

std::optional<int> LandingTracker::Take() {
  if (complete_.empty()) return std::nullopt;
  const int variable = complete_.front();
  complete_.pop_front();
  return variable;
}

}  // namespace keelson
