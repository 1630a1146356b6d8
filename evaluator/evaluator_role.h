// The evaluator's role as a main runs it: flags, device, data, dashboard, and the evaluator itself.
#ifndef KEELSON_EVALUATOR_EVALUATOR_ROLE_H_
#define KEELSON_EVALUATOR_EVALUATOR_ROLE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/serving/prediction_server.h"
#include "core/startup/role_program.h"
#include "dashboard/assets.h"
#include "dashboard/dashboard_flags.h"

namespace CLI {
class App;
}

namespace keelson {

struct EvaluatorFlags {
  std::string device = "auto";
  int compute_threads = 0;  // 0: one per core
  int script_socket = -1;   // -1: no script computes the scores
  bool directory_only = false;
  DashboardFlags dashboard;
  ServingFlags serving;
};

// Adds the flags; see AddDashboardFlags.
void AddEvaluatorFlags(CLI::App* app, EvaluatorFlags* flags);

// The parts that only a dashboard needs.
struct DashboardParts {
  AssetTable assets;  // as Dashboard::Options
  std::string token;  // ReadDashboardToken's
};

// Serves predictions of a job that this process takes no part in: with the configuration that it
// has left in the context's model directory. Null: not wanted. Errors of LoadTrainConfig and
// PredictionServer::Start.
absl::StatusOr<std::unique_ptr<PredictionServer>> StartServing(const RoleContext& context,
                                                               const ServingFlags& flags);

// Serves the dashboard and predictions where they are wanted, opens data and device, then scores
// the snapshots in the model directory until the job is over. `chief` may be null: then only the
// directory is watched. INVALID_ARGUMENT: no model directory, no such port; INVALID_ARGUMENT,
// NOT_FOUND, DATA_LOSS: the data; otherwise as StartJobDashboard, PredictionServer::Start and
// Evaluator::Run.
absl::Status RunEvaluatorRole(const RoleContext& context, const EvaluatorFlags& flags,
                              ChiefService* chief, StopSignal* stop, DashboardParts parts = {});

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATOR_ROLE_H_
