#include "cli/ctl.h"

#include "absl/strings/str_cat.h"
#include "cli/job_status_text.h"
#include "cli/mode_text.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/consistency.h"
#include "core/cluster/rank_environment.h"
#include "core/cluster/tf_config.h"

namespace keelson {
namespace {

absl::StatusOr<v1::JobStatus> GetStatus(ChiefService* chief) {
  v1::JobStatus status;
  RETURN_IF_ERROR(chief->GetJobStatus(v1::GetJobStatusRequest(), &status));
  return status;
}

// A chief that trains counts as a worker.
int64_t WorkersAlive(const v1::JobStatus& status) {
  int64_t count = 0;
  for (const v1::MemberStatus& member : status.members()) {
    const v1::Role role = member.task().role();
    if (member.alive() && (role == v1::ROLE_WORKER || role == v1::ROLE_CHIEF)) ++count;
  }
  return count;
}

absl::StatusOr<ConsistencyMode> ResolveMode(ChiefService* chief, absl::string_view text) {
  if (text != "sync") return ConsistencyMode::Parse(text);
  ASSIGN_OR_RETURN(const v1::JobStatus status, GetStatus(chief));
  const int64_t workers = WorkersAlive(status);
  if (workers == 0) {
    return absl::FailedPreconditionError(
        "mode sync: expected a worker that is alive, found none; sync:R says how many");
  }
  return ConsistencyMode::Parse(absl::StrCat("sync:", workers));
}

}  // namespace

absl::StatusOr<std::string> FindChief(const std::string& chief_flag,
                                      const ClusterEnvironment& environment) {
  if (!chief_flag.empty()) {
    ASSIGN_OR_RETURN(const Address address, ParseAddress("--chief", chief_flag));
    return address.ToString();
  }
  ASSIGN_OR_RETURN(const ClusterSpec cluster, ParseTfConfig(environment.tf_config.value_or(""),
                                                            /*expected_role=*/std::nullopt));
  if (auto address = cluster.ChiefAddress(); address.has_value()) return *std::move(address);
  if (!cluster.distributed) {
    ASSIGN_OR_RETURN(const std::optional<ClusterSpec> ranked,
                     ParseRankEnvironment(environment.ranks, std::nullopt));
    if (ranked.has_value()) return ranked->ChiefAddress().value_or("");
  }
  return absl::InvalidArgumentError(
      "--chief: expected the chief's host:port, or a TF_CONFIG or RANK with MASTER_ADDR that say "
      "it; found none of them");
}

absl::Status PrintStatus(ChiefService* chief, bool json, std::ostream* out) {
  ASSIGN_OR_RETURN(const v1::JobStatus status, GetStatus(chief));
  *out << (json ? JobStatusJson(status) + "\n" : JobStatusText(status));
  return absl::OkStatus();
}

absl::Status PrintMode(ChiefService* chief, std::ostream* out) {
  ASSIGN_OR_RETURN(const v1::JobStatus status, GetStatus(chief));
  *out << ModeText(status) << "\n";
  return absl::OkStatus();
}

absl::Status ChangeMode(ChiefService* chief, absl::string_view text, std::ostream* out) {
  ASSIGN_OR_RETURN(const ConsistencyMode mode, ResolveMode(chief, text));
  v1::SetModeRequest request;
  *request.mutable_mode() = mode.ToProto();
  v1::SetModeResponse response;
  RETURN_IF_ERROR(chief->SetMode(request, &response));
  *out << ModeText(response.previous()) << " -> " << mode.ToString() << "\n";
  return absl::OkStatus();
}

absl::Status EndTraining(ChiefService* chief, const std::string& reason, std::ostream* out) {
  v1::EndTrainingRequest request;
  request.set_reason(reason);
  v1::EndTrainingResponse response;
  RETURN_IF_ERROR(chief->EndTraining(request, &response));
  ASSIGN_OR_RETURN(const v1::JobStatus status, GetStatus(chief));
  *out << "training ends early: " << status.end_reason() << "\n";
  return absl::OkStatus();
}

absl::Status SaveSnapshot(ChiefService* chief, std::ostream* out) {
  v1::SaveSnapshotResponse response;
  RETURN_IF_ERROR(chief->SaveSnapshot(v1::SaveSnapshotRequest(), &response));
  *out << "snapshot of step " << response.step() << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
