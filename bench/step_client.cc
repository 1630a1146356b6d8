#include "bench/step_client.h"

#include <optional>
#include <utility>

#include "bench/gradients.h"
#include "bench/message_plan.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/client/grpc_parameter_client.h"

namespace keelson::bench {

absl::StatusOr<std::unique_ptr<LoadClient>> StepClient::Create(const LoadPlan& plan) {
  std::unique_ptr<StepClient> client(new StepClient(plan));
  RETURN_IF_ERROR(client->Connect(plan));
  return client;
}

StepClient::StepClient(const LoadPlan& plan) {
  for (const auto& messages : PlanMessages(plan)) {
    calls_per_step_ += static_cast<int64_t>(messages.size());
  }
}

absl::Status StepClient::Connect(const LoadPlan& plan) {
  ShardedParameterClient::Options options;
  options.self = {Role::kWorker, 0};
  options.membership = plan.membership();
  options.retry.give_up_after = absl::Seconds(10);
  options.formats = plan.formats;
  options.max_in_flight = plan.scenario.in_flight;
  ASSIGN_OR_RETURN(client_, ConnectParameterClient(std::move(options), plan.placement.variables(),
                                                   plan.placement, ServersAt(plan.addresses),
                                                   CredentialsAs("worker"), Clock::Real(), &stop_));
  for (const absl::Span<float> gradient : client_->gradients()) FillGradient(gradient);
  return absl::OkStatus();
}

absl::StatusOr<ClientReport> StepClient::Run(const Window& window) {
  Meter meter(window);
  Meter::Operation operation;
  operation.calls = calls_per_step_;
  do {
    operation.started = MonotonicSeconds();
    client_->Begin(step_++);
    ASSIGN_OR_RETURN(const std::optional<PushResult> result, client_->End());
    operation.ended = MonotonicSeconds();
    operation.pushed_bytes = result->bytes_pushed;
    operation.pulled_bytes = result->bytes_pulled;
  } while (meter.Count(operation));
  return meter.Report();
}

}  // namespace keelson::bench
