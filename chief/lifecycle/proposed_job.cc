#include "chief/lifecycle/proposed_job.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "chief/proposal/proposal_refusal.h"
#include "chief/service/proposal_grpc_service.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/done_marker.h"
#include "core/checkpoint/job_file.h"
#include "core/config/train_config.h"
#include "core/rpc/access.h"
#include "core/rpc/health_service.h"
#include "core/rpc/server.h"
#include "core/startup/job_access.h"

namespace keelson {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

// The job that was trained last in the model directory, if it is done there.
absl::StatusOr<std::optional<ProposedJob>> DoneJob(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const std::optional<DoneMarker> marker, ReadDoneMarker(model_dir));
  if (!marker.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<StoredJobFile> file,
                   ReadJobFile(FileSystem::Real(), model_dir));
  if (!file.has_value() || file->job.config_hash() != HashToString(marker->config_hash)) {
    return std::nullopt;
  }
  ProposedJob done;
  ASSIGN_OR_RETURN(done.config, ParseTrainConfig(file->job.config(), JobFilePath(model_dir)));
  done.config.mutable_checkpoint()->set_model_dir(model_dir);
  RETURN_IF_ERROR(FinalizeTrainConfig(&done.config));
  if (ConfigHash(done.config) != marker->config_hash) return std::nullopt;
  return done;
}

absl::StatusOr<std::unique_ptr<RpcServer>> StartServer(const std::string& listen_address,
                                                       ProposalGrpcService* service,
                                                       HealthService* health,
                                                       const AccessGuard* guard) {
  RawServing serving;
  serving.guard = guard;
  return RpcServer::Start(listen_address, grpc::InsecureServerCredentials(), {service, health},
                          std::move(serving));
}

}  // namespace

absl::StatusOr<ProposedJob> AwaitProposedJob(const RoleContext& context,
                                             const std::string& listen_address,
                                             const std::string& auth_token, StopSignal* stop,
                                             absl::Duration patience) {
  RETURN_IF_ERROR(RequireModelDir(context.config));
  const std::string& model_dir = context.config.checkpoint().model_dir();
  ASSIGN_OR_RETURN(std::optional<ProposedJob> done, DoneJob(model_dir));
  JobProposals proposals(model_dir, FileSystem::Real(), Clock::Real());
  const AccessGuard guard(SecretsOf(context, auth_token));
  v1::JobStatus waiting;
  waiting.set_phase(v1::WAITING_FOR_MODEL);
  ProposalGrpcService service(
      [&](const v1::ProposeJobRequest& request, v1::ProposeJobResponse* response) {
        return proposals.Propose(request, response);
      },
      waiting, &guard);
  HealthService health(&context.telemetry->ready, {v1::ChiefService::service_full_name()});
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   StartServer(listen_address, &service, &health, &guard));
  LogInfo("listening on port ", server->port(), ", waiting for a script that says what is trained");
  absl::StatusOr<std::optional<ProposedJob>> proposed =
      proposals.Await(done.has_value() ? patience : absl::InfiniteDuration(), *stop);
  health.Stop();
  server->Shutdown(kShutdownGrace);
  RETURN_IF_ERROR(proposed.status());
  if (!proposed->has_value()) {
    LogInfo("no script has come, and the job of ", model_dir, " is done");
    return *std::move(done);
  }
  LogInfo("a script has said what is trained: config=",
          HashToString(ConfigHash((*proposed)->config)));
  return **std::move(proposed);
}

void TellScripts(const RoleContext& context, const std::string& listen_address,
                 const std::string& auth_token, const absl::Status& failure, int scripts,
                 absl::Duration patience) {
  if (scripts <= 0) return;
  ProposalRefusal refusal(std::string(failure.message()), Clock::Real());
  const AccessGuard guard(SecretsOf(context, auth_token));
  v1::JobStatus failed;
  failed.set_phase(v1::FAILED);
  failed.set_error(std::string(failure.message()));
  ProposalGrpcService service([&](const v1::ProposeJobRequest& request,
                                  v1::ProposeJobResponse*) { return refusal.Propose(request); },
                              failed, &guard);
  HealthService health(&context.telemetry->ready, {v1::ChiefService::service_full_name()});
  const absl::StatusOr<std::unique_ptr<RpcServer>> server =
      StartServer(listen_address, &service, &health, &guard);
  if (!server.ok()) {
    LogWarning("scripts are not told of it: ", server.status().message());
    return;
  }
  if (!refusal.AwaitTold(static_cast<size_t>(scripts), patience)) {
    LogWarning("some scripts have not asked for a job, and are not told of it");
  }
  health.Stop();
  (*server)->Shutdown(kShutdownGrace);
}

}  // namespace keelson
