// What the newest chief has left with a server: where it is found, and the state of the job from
// which its successor continues.
#ifndef KEELSON_PS_SERVER_SERVICE_CHIEF_RECORD_H_
#define KEELSON_PS_SERVER_SERVICE_CHIEF_RECORD_H_

#include <cstdint>
#include <string>

#include "core/base/mutex.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe. Outlives shards, but not the process.
class ChiefRecord {
 public:
  // Takes the address, if there is one, and the job state, if it is at least as new by (term,
  // version) as the one that is there.
  void Take(const v1::ChiefHeartbeatRequest& request);

  std::string address() const;  // empty: no chief has called
  uint64_t state_version() const;
  // Sets job_state, job_state_version and job_state_term.
  void FillJobState(v1::ShardStatus* status) const;

 private:
  mutable Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::string state_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t term_ ABSL_GUARDED_BY(mu_) = 0;  // of the chief that sent it
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_CHIEF_RECORD_H_
