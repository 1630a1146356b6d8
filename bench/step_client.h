// Steps of the client that workers use: push of all gradients fused with the pull of all values.
#ifndef KEELSON_BENCH_STEP_CLIENT_H_
#define KEELSON_BENCH_STEP_CLIENT_H_

#include <memory>

#include "bench/load_client.h"
#include "core/base/stop_signal.h"
#include "core/client/services/parameter_client.h"

namespace keelson::bench {

// An operation is one step: Begin and End with gradients that are ready, at depth 1.
class StepClient : public LoadClient {
 public:
  static absl::StatusOr<std::unique_ptr<LoadClient>> Create(const LoadPlan& plan);

  absl::StatusOr<ClientReport> Run(const Window& window) override;

 private:
  explicit StepClient(const LoadPlan& plan);

  // Fails at once when a server is away: a benchmark does not wait.
  absl::Status Connect(const LoadPlan& plan);

  StopSignal stop_;
  std::unique_ptr<ParameterClient> client_;
  int64_t calls_per_step_ = 0;
  int64_t step_ = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_STEP_CLIENT_H_
