// The gRPC shell of a chief that has no job: it waits for a script to say what is trained, or has
// given up.
#ifndef KEELSON_CHIEF_SERVICE_PROPOSAL_GRPC_SERVICE_H_
#define KEELSON_CHIEF_SERVICE_PROPOSAL_GRPC_SERVICE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/rpc/access.h"
#include "core/rpc/guarded_call.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {

// Takes proposals, and says of the job what it is told. Of the other calls those of members
// get ABORTED, as from any chief that does not know them: they propose the job and register again.
// The rest get UNAVAILABLE, so that the caller tries again. Callers are checked as by
// ChiefGrpcService.
class ProposalGrpcService final : public v1::ChiefService::Service {
 public:
  // Answers a proposal; thread-safe.
  using Propose = std::function<absl::Status(const v1::ProposeJobRequest& request,
                                             v1::ProposeJobResponse* response)>;

  // `job`: what is said of it. `guard` outlives the service and may be null.
  ProposalGrpcService(Propose propose, v1::JobStatus job, const AccessGuard* guard);

 private:
  template <typename Request, typename Response>
  void Serve(absl::string_view method,
             std::function<absl::Status(const Request& request, Response* response)> handle);
  template <typename Request, typename Response>
  void Refuse(absl::string_view method, absl::StatusCode code);

  GuardedCalls calls_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_PROPOSAL_GRPC_SERVICE_H_
