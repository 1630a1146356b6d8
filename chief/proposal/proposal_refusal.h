// What a chief answers to scripts that propose a job when it has given up.
#ifndef KEELSON_CHIEF_PROPOSAL_PROPOSAL_REFUSAL_H_
#define KEELSON_CHIEF_PROPOSAL_PROPOSAL_REFUSAL_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// Thread-safe.
class ProposalRefusal {
 public:
  // `reason`: the chief's error in one line. `clock` outlives this.
  ProposalRefusal(std::string reason, const Clock* clock)
      : reason_(std::move(reason)), clock_(clock) {}

  // FAILED_PRECONDITION: always, with the reason, as members of a job that has failed are told.
  absl::Status Propose(const v1::ProposeJobRequest& request);

  // Waits until so many scripts have proposed, each of which counts once. False: they have not
  // within `patience`.
  bool AwaitTold(size_t scripts, absl::Duration patience);

 private:
  const std::string reason_;
  const Clock* const clock_;

  Mutex mu_;
  CondVar told_now_;
  std::set<uint64_t> told_ ABSL_GUARDED_BY(mu_);  // by proposal_id
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_PROPOSAL_PROPOSAL_REFUSAL_H_
