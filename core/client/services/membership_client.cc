#include "core/client/services/membership_client.h"

#include <optional>
#include <utility>

#include "core/base/status_macros.h"
#include "core/cluster/task_proto.h"

namespace keelson {

MembershipClient::MembershipClient(Options options, ChiefService* chief, const Clock* clock,
                                   const StopSignal* stop)
    : options_(std::move(options)), chief_(chief), clock_(clock), stop_(stop) {}

v1::RequestHeader MembershipClient::Header() const {
  v1::RequestHeader header;
  *header.mutable_task() = TaskToProto(options_.self);
  SetMembershipId(options_.membership, &header);
  header.set_member_epoch(member_epoch_);
  return header;
}

absl::StatusOr<v1::RegisterResponse> MembershipClient::Register(
    const std::vector<v1::HeldLease>& held) {
  v1::RegisterRequest request;
  *request.mutable_header() = Header();
  request.set_config_hash(options_.config_hash);
  request.set_peer(options_.peer);
  request.set_device(options_.device);
  if (options_.step_bound > absl::ZeroDuration()) {
    request.mutable_step_bound()->set_seconds(absl::ToInt64Seconds(options_.step_bound));
  }
  request.mutable_leases()->Add(held.begin(), held.end());
  std::optional<absl::Duration> give_up;
  while (true) {
    v1::RegisterResponse response;
    absl::Duration asked;
    const absl::Status status =
        CallWithRetries(options_.retry, "waiting for the chief", clock_, stop_, [&] {
          absl::Status answer = options_.prepare == nullptr ? absl::OkStatus() : options_.prepare();
          asked = clock_->Monotonic();
          if (answer.ok()) answer = chief_->Register(request, &response);
          // A restarted chief grants the holder a whole lease of its own.
          if (IsTransient(answer)) give_up.reset();
          return answer;
        });
    if (status.ok()) {
      registered_before_ = true;
      return response;
    }
    if (status.code() != absl::StatusCode::kAlreadyExists) return status;
    if (!give_up.has_value()) {
      ASSIGN_OR_RETURN(const absl::Duration patience, PatienceWithHolder());
      give_up = clock_->Monotonic() + patience;
    }
    // Whoever has stood still since has an old answer: the holder's lease may be over by now.
    if (asked >= *give_up) return status;
    if (stop_->WaitFor(options_.held_pause)) return absl::CancelledError("while joining");
  }
}

absl::StatusOr<absl::Duration> MembershipClient::PatienceWithHolder() {
  if (registered_before_) return options_.replaced_patience;
  v1::JobStatus job;
  RETURN_IF_ERROR(CallWithRetries(options_.retry, "waiting for the chief", clock_, stop_, [&] {
    return chief_->GetJobStatus(v1::GetJobStatusRequest(), &job);
  }));
  return absl::Seconds(job.lease().seconds()) + options_.held_margin;
}

}  // namespace keelson
