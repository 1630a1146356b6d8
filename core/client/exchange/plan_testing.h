// A planned message for tests of what tracks messages.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_PLAN_TESTING_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_PLAN_TESTING_H_

#include <vector>

#include "core/client/plan/transfer_plan.h"

namespace keelson {

inline PlannedMessage MessageOf(const std::vector<size_t>& variables) {
  PlannedMessage message;
  for (const size_t variable : variables) message.blocks.emplace_back().variable = variable;
  return message;
}

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_PLAN_TESTING_H_
