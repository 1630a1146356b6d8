#include "programs/leader.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/client/services/chief_service.h"
#include "core/config/shard_layout.h"

namespace keelson {
namespace {

// Why the work beside the chief has ended: with the chief's failure, which has stopped it, or as it
// says.
absl::Status EndOf(ChiefService* chief, const absl::Status& work) {
  v1::JobStatus job;
  const bool failed = absl::IsCancelled(work) &&
                      chief->GetJobStatus(v1::GetJobStatusRequest(), &job).ok() &&
                      job.phase() == v1::FAILED;
  if (!failed) return work;
  return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", job.error()));
}

}  // namespace

void AddLeaderFlags(CLI::App* app, LeaderFlags* flags) {
  AddChiefFlags(app, &flags->chief);
  AddShardFlags(app, &flags->shard);
}

absl::Status RunLeader(const RoleContext& context, const LeaderFlags& flags, const Trainer& trainer,
                       const ProposedJob* job, StopSignal* stop) {
  ChiefSurroundings surroundings;
  surroundings.job = job;
  std::optional<ShardHost> host;
  if (ShardLayout(context.config, context.cluster).HomeAt(context.self).has_value()) {
    host.emplace(context, flags.shard);
    surroundings.shard =
        ChiefShard{[&host](size_t shard) { return host->control(shard); },
                   [&host](const AccessGuard* guard) { return host->MakeShell(guard); }};
  }
  BulkHandler* const own_shard = host.has_value() ? host->bulk() : nullptr;
  if (trainer != nullptr) {
    surroundings.companions.push_back([&](ChiefService* chief, StopSignal* companion_stop) {
      const auto explain = [chief](const absl::Status& work) { return EndOf(chief, work); };
      return trainer(context, {chief, own_shard, explain}, companion_stop);
    });
  }
  return RunChiefRole(context, flags.chief, surroundings, stop);
}

}  // namespace keelson
