#include "core/client/exchange/gradient_release.h"

#include <algorithm>

namespace keelson {

void ReleaseGradients(absl::Span<ExchangeStep> steps, BulkTransport* transport) {
  for (ExchangeStep& step : steps) {
    const bool failed = step.result.retries > 0 || step.result.refused;
    if (!step.active || !step.landed || step.reset || !failed) continue;
    step.reset = true;
    for (size_t s = 0; s < step.rounds.size(); ++s) {
      if (AnyHeld(step.rounds[s])) transport->Reset(s);
    }
  }
}

void AbandonGradients(absl::Span<const ExchangeStep> steps, bool lent, BulkTransport* transport) {
  for (size_t s = 0; s < transport->num_shards(); ++s) {
    const bool held = std::any_of(steps.begin(), steps.end(), [s](const ExchangeStep& step) {
      return AnyHeld(step.rounds[s]);
    });
    if (held) transport->Reset(s);
  }
  const auto held = [&] {
    return std::any_of(steps.begin(), steps.end(),
                       [](const ExchangeStep& step) { return AnyHeld(step); });
  };
  while (lent && held()) transport->Next(kReleasePoll);
}

}  // namespace keelson
