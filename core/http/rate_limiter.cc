#include "core/http/rate_limiter.h"

#include <algorithm>

namespace keelson {

RateLimiter::RateLimiter(double per_second, double burst, const Clock* clock)
    : per_second_(per_second), burst_(burst), clock_(clock) {}

absl::Duration RateLimiter::Take(const std::string& client) {
  const absl::Duration now = clock_->Monotonic();
  MutexLock lock(&mu_);
  Bucket* const bucket = BucketOf(client, now);
  const double gained = absl::ToDoubleSeconds(now - bucket->updated) * per_second_;
  bucket->tokens = std::min(burst_, bucket->tokens + std::max(gained, 0.0));
  bucket->updated = std::max(bucket->updated, now);
  if (bucket->tokens < 1) return absl::Seconds((1 - bucket->tokens) / per_second_);
  bucket->tokens -= 1;
  return absl::ZeroDuration();
}

RateLimiter::Bucket* RateLimiter::BucketOf(const std::string& client, absl::Duration now) {
  const auto known = buckets_.find(client);
  if (known != buckets_.end()) return &known->second;
  if (buckets_.size() >= kMaxClients) {
    buckets_.erase(std::min_element(
        buckets_.begin(), buckets_.end(),
        [](const auto& a, const auto& b) { return a.second.updated < b.second.updated; }));
  }
  return &buckets_.emplace(client, Bucket{burst_, now}).first->second;
}

}  // namespace keelson
