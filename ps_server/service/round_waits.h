// The pulls that wait until a synchronous step's values are there.
#ifndef KEELSON_PS_SERVER_SERVICE_ROUND_WAITS_H_
#define KEELSON_PS_SERVER_SERVICE_ROUND_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace keelson {

// Thread-safe.
class RoundWaits {
 public:
  // Stands for all rounds: nothing need be waited for.
  static constexpr int64_t kAnyRound = std::numeric_limits<int64_t>::max();

  // Whether the round is committed. If not, `wake` is called once, by WakeUpTo or WakeAll.
  // `committed` says which round is the newest that is; it is called with this object's lock, so
  // that no commit between the question and the wait is missed.
  bool MayGoOn(int64_t round, absl::FunctionRef<int64_t()> committed, std::function<void()> wake);

  // The round is committed; call when `committed` above says so.
  void WakeUpTo(int64_t round);
  void WakeAll() { WakeUpTo(kAnyRound); }

 private:
  Mutex mu_;
  std::multimap<int64_t, std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);  // by round
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_ROUND_WAITS_H_
