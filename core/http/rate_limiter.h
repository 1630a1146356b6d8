// Limits the rate of each client's requests.
#ifndef KEELSON_CORE_HTTP_RATE_LIMITER_H_
#define KEELSON_CORE_HTTP_RATE_LIMITER_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

// A bucket of tokens for each client: `burst` of them at first, and `per_second` more, up to
// `burst`. Remembers at most kMaxClients; beyond, the one that has been silent longest is
// forgotten. Thread-safe.
class RateLimiter {
 public:
  static constexpr size_t kMaxClients = 1024;

  // `clock` outlives this.
  RateLimiter(double per_second, double burst, const Clock* clock);

  // Takes one of the client's tokens. Zero: the request is allowed; otherwise the time until the
  // next token.
  absl::Duration Take(const std::string& client);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Duration updated;
  };

  Bucket* BucketOf(const std::string& client, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const double per_second_;
  const double burst_;
  const Clock* const clock_;

  Mutex mu_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_RATE_LIMITER_H_
