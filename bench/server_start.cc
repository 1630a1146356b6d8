#include "bench/server_start.h"

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_parameter_control.h"

namespace keelson::bench {
namespace {

// So small that values stay what they are, whatever is pushed how often.
constexpr float kLearningRate = 1e-6f;

keelson::v1::InitializeShardRequest RequestOf(const LoadPlan& plan) {
  keelson::v1::InitializeShardRequest request;
  request.mutable_header()->set_incarnation(RandomId());
  *request.mutable_placement() = plan.placement.ToProto();
  request.set_placement_fingerprint(plan.placement.Fingerprint());
  if (plan.scenario.handler == Handler::kAdam) {
    request.mutable_optimizer()->mutable_adam();
  } else {
    request.mutable_optimizer()->mutable_sgd();
  }
  request.mutable_learning_rate()->set_base(kLearningRate);
  *request.mutable_members() = AllClients();
  return request;
}

}  // namespace

absl::Status InitializeServers(const LoadPlan& plan) {
  return InitializeShards(RequestOf(plan), plan.addresses);
}

absl::Status InitializeShards(keelson::v1::InitializeShardRequest request,
                              const std::vector<std::string>& addresses) {
  for (size_t s = 0; s < addresses.size(); ++s) {
    const auto server =
        ConnectParameterControl(absl::StrCat("ps-", s), addresses[s], CredentialsAs("chief"));
    // A server that was started for a job insists on its configuration.
    v1::ShardStatus status;
    RETURN_IF_ERROR(server->GetStatus(v1::GetShardStatusRequest(), &status));
    request.set_config_hash(status.config_hash());
    request.mutable_header()->set_chief_term(status.chief_term() + 1);
    request.set_shard(static_cast<uint32_t>(s));
    v1::InitializeShardResponse response;
    RETURN_IF_ERROR(server->Initialize(request, &response));
  }
  return absl::OkStatus();
}

}  // namespace keelson::bench
