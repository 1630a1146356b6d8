#include "bench/chief/load.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/meter.h"

namespace keelson::bench {
namespace {

// Long enough that waiting costs little, short against the pauses between one worker's calls.
constexpr absl::Duration kPause = absl::Milliseconds(1);

}  // namespace

Load::Load(std::vector<Stream> streams, const StopSignal* stop)
    : streams_(std::move(streams)), stop_(stop), made_(streams_.size(), 0) {}

void Load::MakeDue(double elapsed) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    const auto due = static_cast<int64_t>(elapsed * streams_[s].per_second);
    while (made_[s] < due) streams_[s].call(made_[s]++);
  }
}

void Load::Run(double seconds) {
  const double begin = MonotonicSeconds();
  while (true) {
    const double now = std::min(MonotonicSeconds() - begin, seconds);
    MakeDue(elapsed_ + now);
    if (now >= seconds || (stop_ != nullptr && stop_->raised())) break;
    absl::SleepFor(std::min(kPause, absl::Seconds(seconds - now)));
  }
  elapsed_ += seconds;
}

}  // namespace keelson::bench
