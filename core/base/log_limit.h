// Keeps others from filling the log, where each of their acts is worth a line.
#ifndef KEELSON_CORE_BASE_LOG_LIMIT_H_
#define KEELSON_CORE_BASE_LOG_LIMIT_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

// The first lines are written one by one, later ones once a second. Thread-safe.
class LogLimit {
 public:
  static constexpr int64_t kOneByOne = 20;

  // `clock` outlives this.
  explicit LogLimit(const Clock* clock) : clock_(clock) {}

  // Asks for a line. Nothing: it is left out; otherwise how many were left out before it.
  std::optional<int64_t> Admit();

 private:
  const Clock* const clock_;
  Mutex mu_;
  int64_t asked_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration admitted_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_LOG_LIMIT_H_
