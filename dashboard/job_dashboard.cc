#include "dashboard/job_dashboard.h"

#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cluster/job_name.h"
#include "dashboard/api/model_predictor.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

// Predictions are for one example at a time; the other cores are for evaluations.
constexpr int kPredictionThreads = 1;

Dashboard::Options CommonOptions(const RoleContext& context, const DashboardFlags& flags,
                                 AssetTable assets) {
  Dashboard::Options options;
  options.port = flags.port.value_or(kDefaultDashboardPort);
  options.address = flags.address;
  options.hosts = flags.hosts;
  // A Service of the task's own may give it another name than its host has.
  if (const std::string own = context.cluster.SelfHostName(); !own.empty()) {
    options.hosts.push_back(own);
  }
  options.runs.model_dir = context.config.checkpoint().model_dir();
  options.runs.runs = flags.runs;
  options.telemetry = context.telemetry.get();
  options.assets = std::move(assets);
  options.new_predictor = [](const std::string& model_dir) {
    return std::make_unique<ModelPredictor>(model_dir, kPredictionThreads, Clock::Real());
  };
  return options;
}

}  // namespace

absl::StatusOr<JobDashboard> StartJobDashboard(const RoleContext& context,
                                               const DashboardFlags& flags,
                                               const std::string& token, AssetTable assets,
                                               ChiefService* chief, ScriptModel* script) {
  JobDashboard job;
  if (!flags.port.has_value()) return job;
  if (chief != nullptr) job.actions = ChiefActions(chief);
  Dashboard::Options options = CommonOptions(context, flags, std::move(assets));
  options.runs.live = true;
  options.runs.script = script;
  options.runs.job_name = JobNameOf(context.cluster);
  google::protobuf::TextFormat::PrintToString(context.config, &options.runs.config_text);
  options.actions = job.actions.get();
  options.token = token;
  ASSIGN_OR_RETURN(job.dashboard, Dashboard::Start(std::move(options)));
  return job;
}

absl::Status ServeRuns(const RoleContext& context, const DashboardFlags& flags, AssetTable assets,
                       const StopSignal* stop) {
  if (context.config.checkpoint().model_dir().empty() && flags.runs.empty()) {
    return absl::InvalidArgumentError(
        "--serve_only: expected --model_dir or --runs, found neither");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Dashboard> dashboard,
                   Dashboard::Start(CommonOptions(context, flags, std::move(assets))));
  context.telemetry->ready = true;
  stop->Wait();
  *context.result = "stopped";
  LogInfo("stopped by a signal");
  return absl::OkStatus();
}

}  // namespace keelson
