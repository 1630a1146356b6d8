#include "evaluator/evaluator_role.h"

#include <memory>
#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/data/open_datasets.h"
#include "core/device/device_factory.h"
#include "core/model/model_spec.h"
#include "evaluator/dashboard.h"
#include "evaluator/evaluator.h"

namespace keelson {
namespace {

// Null: not wanted.
absl::StatusOr<std::unique_ptr<Dashboard>> StartDashboard(const EvaluatorFlags& flags,
                                                          const v1::TrainConfig& config) {
  if (!flags.dashboard_port.has_value()) return nullptr;
  return Dashboard::Start(*flags.dashboard_port, config.checkpoint().model_dir());
}

}  // namespace

void AddEvaluatorFlags(CLI::App* app, EvaluatorFlags* flags) {
  app->add_option("--device", flags->device,
                  "cpu; cuda, the first GPU; cuda:N; or auto: cuda where there is a usable GPU")
      ->capture_default_str();
  app->add_option("--compute_threads", flags->compute_threads,
                  "Threads of the CPU device (default: one per core)");
  app->add_option("--dashboard_port", flags->dashboard_port,
                  "Serves a page with all evaluations on this port; 0: any free one, which the log "
                  "names (default: not served)")
      ->check(CLI::Range(0, 65535));
}

absl::Status RunEvaluatorRole(const RoleContext& context, const EvaluatorFlags& flags,
                              ChiefService* chief, StopSignal* stop) {
  RETURN_IF_ERROR(RequireModelDir(context.config));
  ASSIGN_OR_RETURN(const std::unique_ptr<Dashboard> dashboard,
                   StartDashboard(flags, context.config));
  DeviceOptions device_options;
  device_options.threads = flags.compute_threads;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   CreateDevice(flags.device, device_options));
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
  ASSIGN_OR_RETURN(const Datasets data,
                   OpenDatasets(context.config.data(), spec.input, spec.num_classes(),
                                context.config.train().seed()));
  context.telemetry->ready = true;
  LogInfo("evaluating ", context.config.checkpoint().model_dir(), " on ", data.eval->num_records(),
          " records, device ", device->name());
  EvaluatorOptions options;
  options.self = context.self;
  options.peer = context.peer;
  options.config = context.config;
  options.config_hash = context.config_hash;
  if (dashboard != nullptr) {
    options.on_evaluation = [&](const EvaluationRecord& record) { dashboard->Add(record); };
  }
  Evaluator evaluator(std::move(options), chief, device.get(), data.eval.get(), Clock::Real(),
                      stop);
  return evaluator.Run();
}

}  // namespace keelson
