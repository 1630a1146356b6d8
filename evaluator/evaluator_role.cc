#include "evaluator/evaluator_role.h"

#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/data/open_datasets.h"
#include "core/device/factory/device_factory.h"
#include "core/model/spec/model_spec.h"
#include "dashboard/job_dashboard.h"
#include "evaluator/evaluator.h"
#include "evaluator/evaluator_metrics.h"
#include "evaluator/script_predictions.h"
#include "evaluator/script_role.h"
#include "evaluator/snapshot_scorer.h"

namespace keelson {
namespace {

void AddServingFlags(CLI::App* app, ServingFlags* flags) {
  CLI::Option* const port = app->add_option(
      "--serve", flags->port,
      "Answers POST /v1/models/NAME:predict on this port, in TensorFlow Serving's form, with the "
      "newest snapshot; 0: any free one, which the log has");
  port->check(CLI::Range(0, 65535));
  app->add_option("--serve_address", flags->address,
                  "Serves predictions on this address only (default: on all of the host's)")
      ->needs(port);
  app->add_option("--serve_hosts", flags->hosts,
                  "NAME,NAME,…: further names by which clients reach them; as --dashboard_hosts")
      ->delimiter(',')
      ->needs(port);
}

absl::Status Evaluate(const RoleContext& context, ChiefService* chief, ScorerFactory make_scorer,
                      StopSignal* stop) {
  EvaluatorMetrics metrics;
  const MetricRegistry::Registration registration =
      context.telemetry->metrics.Add([&metrics](MetricPage* page) { metrics.Collect(page); });
  EvaluatorOptions options;
  options.self = context.self;
  options.peer = context.peer;
  options.config = context.config;
  options.config_hash = context.config_hash;
  options.on_evaluation = [&metrics](const EvaluationRecord& record, bool scored_here) {
    metrics.Add(record, scored_here);
  };
  const ScorerFactory make = [&]() -> absl::StatusOr<std::unique_ptr<Scorer>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, make_scorer());
    metrics.SetDevice(scorer->computes());
    return scorer;
  };
  return Evaluator(std::move(options), chief, make, Clock::Real(), stop).Run();
}

absl::Status EvaluateOnDevice(const RoleContext& context, const EvaluatorFlags& flags,
                              ChiefService* chief, StopSignal* stop) {
  DeviceOptions device_options;
  device_options.threads = flags.compute_threads;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   CreateDevice(flags.device, device_options));
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
  ASSIGN_OR_RETURN(const Datasets data, OpenDatasets(context.config.data(), spec.records,
                                                     context.config.train().seed()));
  context.telemetry->ready = true;
  return Evaluate(
      context, chief,
      [&] {
        return SnapshotScorer::Create(context.config, device.get(), data.eval.get(), Clock::Real(),
                                      stop);
      },
      stop);
}

}  // namespace

void AddEvaluatorFlags(CLI::App* app, EvaluatorFlags* flags) {
  app->add_option("--device", flags->device,
                  "cpu; cuda, the first GPU; cuda:N; or auto: cuda where there is a usable GPU")
      ->capture_default_str();
  app->add_option("--compute_threads", flags->compute_threads,
                  "Threads of the CPU device (default: one per core)");
  app->add_option("--script_socket", flags->script_socket,
                  "The descriptor of the socket to a script that computes the scores, which starts "
                  "this program with it (docs/agent-protocol.md)");
  app->add_flag("--directory_only", flags->directory_only,
                "Takes no part in the job: scores the snapshots in the model directory, also of a "
                "job that is done, and ends when it is");
  AddDashboardFlags(app, &flags->dashboard);
  AddServingFlags(app, &flags->serving);
}

absl::StatusOr<std::unique_ptr<PredictionServer>> StartServing(const RoleContext& context,
                                                               const ServingFlags& flags) {
  if (!flags.port.has_value()) return nullptr;
  RETURN_IF_ERROR(RequireModelDir(context.config));
  const std::string& model_dir = context.config.checkpoint().model_dir();
  ASSIGN_OR_RETURN(v1::TrainConfig config,
                   LoadTrainConfig(JoinPath(model_dir, "train_config.textproto")));
  config.mutable_checkpoint()->set_model_dir(model_dir);
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return PredictionServer::Start(config, flags, FileSystem::Real(), Clock::Real());
}

absl::Status RunEvaluatorRole(const RoleContext& context, const EvaluatorFlags& flags,
                              ChiefService* chief, StopSignal* stop, DashboardParts parts) {
  RETURN_IF_ERROR(RequireModelDir(context.config));
  ScriptPredictions of_script;
  ASSIGN_OR_RETURN(const JobDashboard dashboard,
                   StartJobDashboard(context, flags.dashboard, parts.token, std::move(parts.assets),
                                     chief, flags.script_socket >= 0 ? &of_script : nullptr));
  std::unique_ptr<PredictionServer> predictions;
  if (flags.serving.port.has_value()) {
    ASSIGN_OR_RETURN(predictions, PredictionServer::Start(context.config, flags.serving,
                                                          FileSystem::Real(), Clock::Real()));
  }
  if (flags.script_socket >= 0) {
    const std::optional<int> page = dashboard.dashboard == nullptr
                                        ? std::nullopt
                                        : std::optional<int>(dashboard.dashboard->port());
    return EvaluateWithScript(context, flags.script_socket, page, &of_script, stop,
                              [&](ScorerFactory make_scorer, StopSignal* gone) {
                                return Evaluate(context, chief, std::move(make_scorer), gone);
                              });
  }
  return EvaluateOnDevice(context, flags, chief, stop);
}

}  // namespace keelson
