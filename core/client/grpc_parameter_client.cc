#include "core/client/grpc_parameter_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/client/grpc_parameter_service.h"

namespace keelson {
namespace {

class ConnectedParameterClient : public ParameterClient {
 public:
  ConnectedParameterClient(std::vector<std::unique_ptr<ParameterService>> services,
                           std::unique_ptr<ParameterClient> client)
      : services_(std::move(services)), client_(std::move(client)) {}

  absl::Span<const Tensor> values() const override { return client_->values(); }
  absl::Status Pull() override { return client_->Pull(); }
  absl::StatusOr<PushResult> Push(int64_t step, absl::Span<const Tensor> gradients) override {
    return client_->Push(step, gradients);
  }

 private:
  const std::vector<std::unique_ptr<ParameterService>> services_;
  const std::unique_ptr<ParameterClient> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<std::string>& addresses,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials, const Clock* clock,
    const StopSignal* stop) {
  std::vector<std::unique_ptr<ParameterService>> services;
  std::vector<ParameterService*> shards;
  for (size_t s = 0; s < addresses.size(); ++s) {
    services.push_back(ConnectParameterService(absl::StrCat("ps-", s), addresses[s], credentials));
    shards.push_back(services.back().get());
  }
  options.threads = static_cast<int>(addresses.size()) - 1;
  ASSIGN_OR_RETURN(std::unique_ptr<ShardedParameterClient> client,
                   ShardedParameterClient::Create(options, variables, placement, std::move(shards),
                                                  clock, stop));
  return std::make_unique<ConnectedParameterClient>(std::move(services), std::move(client));
}

}  // namespace keelson
