#include "ps_server/service/departure.h"

#include "core/base/log.h"

namespace keelson {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);

}  // namespace

bool MustLinger(const ChiefSign& chief, absl::Duration waited, const DepartureLimits& limits) {
  const bool loses = chief.unsaved && !chief.stopping;
  const absl::Duration silence = loses ? limits.silence_unsaved : limits.silence;
  if (chief.silence >= silence || waited >= limits.longest) return false;
  return chief.stopping || chief.unsaved || waited < limits.announcement;
}

void LingerForChief(const std::function<ChiefSign()>& chief, const std::function<bool()>& close,
                    const DepartureLimits& limits, const Clock* clock, const StopSignal& end) {
  const absl::Duration start = clock->Monotonic();
  const auto lingers = [&] { return MustLinger(chief(), clock->Monotonic() - start, limits); };
  bool said = false;
  // What cannot be closed may have been saved meanwhile, or nobody is left who could save it.
  while (!end.raised() && (lingers() || (!close() && lingers()))) {
    if (!said) LogInfo("asked to stop, serving until the chief has taken its last snapshot");
    said = true;
    end.WaitFor(kLook);
  }
}

}  // namespace keelson
