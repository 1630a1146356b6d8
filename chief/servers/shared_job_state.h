// The job state as bytes, made once for all servers that are to store it: making it takes time in
// proportion to the members and their work.
#ifndef KEELSON_CHIEF_SERVERS_SHARED_JOB_STATE_H_
#define KEELSON_CHIEF_SERVERS_SHARED_JOB_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// Thread-safe.
class SharedJobState {
 public:
  struct State {
    uint64_t number = 0;     // from 1; higher in a newer state
    v1::MemberList members;  // the state knows of each of them
    std::string bytes;       // a PersistedJobState
    uint64_t version = 0;    // its job.state_version
  };

  // A state of at least these.
  struct Wanted {
    uint64_t number = 0;
    uint64_t epoch = 0;    // of the members
    uint64_t request = 0;  // made after that many requests were counted
  };

  // `persisted` and `members` make what is shared. They are not called at the same time, and must
  // not call Get. `clock` outlives this.
  SharedJobState(std::function<v1::PersistedJobState()> persisted,
                 std::function<v1::MemberList()> members, const Clock* clock,
                 absl::Duration longest_age)
      : persisted_(std::move(persisted)),
        members_(std::move(members)),
        clock_(clock),
        longest_age_(longest_age) {}

  // The newest state when it is as wanted and at most `longest_age` old; otherwise a new one. Waits
  // while another caller makes one.
  std::shared_ptr<const State> Get(const Wanted& wanted);

 private:
  const std::function<v1::PersistedJobState()> persisted_;
  const std::function<v1::MemberList()> members_;
  const Clock* const clock_;
  const absl::Duration longest_age_;

  Mutex mu_;
  std::shared_ptr<const State> newest_ ABSL_GUARDED_BY(mu_);
  uint64_t request_ ABSL_GUARDED_BY(mu_) = 0;  // that it was made for
  absl::Duration made_ ABSL_GUARDED_BY(mu_);   // Clock::Monotonic() before it was made
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SHARED_JOB_STATE_H_
