#include "programs/hosting_agent.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/proposal/job_proposals.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_file.h"
#include "core/config/train_config.h"
#include "core/rpc/connection_gate.h"
#include "core/rpc/local_listener.h"
#include "core/rpc/local_socket.h"
#include "programs/hosting_worker.h"
#include "programs/trainer.h"
#include "worker/script/job_proposer.h"

namespace keelson {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
// How long a leader may take to end after it has closed its address. Another job that has the
// directory has it for longer.
constexpr absl::Duration kLongestEnd = absl::Seconds(5);

// Whether another process listens where RpcServer would.
bool IsTaken(const std::string& address) {
  const absl::Status listened =
      ConnectionGate::Listen(address, ConnectionGate::Limits::OfProcess()).status();
  if (listened.message() == strerror(EADDRINUSE)) return true;
  const int port = LocalSocketPort(address);
  return port > 0 && !(LocalListener::Listen(LocalSocket(port)).ok() &&
                       LocalListener::Listen(MemorySocket(port)).ok());
}

// A script that has ended will not come back to this process, which then makes room for the next.
Trainer TrainerFor(const AgentFlags& flags) {
  return [flags](const RoleContext& context, const TrainingPlace& place,
                 StopSignal* stop) -> absl::Status {
    StopSignal gone(stop);
    ASSIGN_OR_RETURN(const std::unique_ptr<ScriptSocket> script,
                     ScriptSocket::Create(flags.script_socket, &gone));
    const absl::Status status = ServeScript(
        context, flags, script.get(), place.chief,
        GrpcParameterClients(context, flags.worker, place.own_shard), place.explain, &gone);
    if (absl::IsCancelled(status) && !stop->raised()) {
      LogInfo("the script has ended");
      stop->Raise();
    }
    return status;
  };
}

// What the script of this process says that is trained; nothing: a configuration says it. The
// initial values come into the model directory under a name of their own.
absl::StatusOr<std::optional<ProposedJob>> JobOfScript(const RoleContext& context,
                                                       const AgentFlags& flags, StopSignal* stop) {
  if (!context.config.model().has_external()) return std::nullopt;
  RETURN_IF_ERROR(RequireModelDir(context.config));
  JobProposals proposals(context.config.checkpoint().model_dir(), FileSystem::Real(),
                         Clock::Real());
  JobProposer proposer(
      context.config, flags.initial_values,
      [&proposals](const v1::ProposeJobRequest& request, v1::ProposeJobResponse* response) {
        return proposals.Propose(request, response);
      },
      FileSystem::Real());
  RETURN_IF_ERROR(proposer.Propose());
  return proposals.Await(absl::InfiniteDuration(), *stop);
}

// Returns when `is_taken` does not hold any more, after `patience`, or when `stop` is raised.
void AwaitFree(absl::string_view what, const std::function<bool()>& is_taken,
               absl::Duration patience, const StopSignal& stop) {
  const Clock* const clock = Clock::Real();
  const absl::Duration until = clock->Monotonic() + patience;
  bool waits = false;
  while (is_taken() && clock->Monotonic() < until && !stop.raised()) {
    if (!waits) LogInfo("waiting for the end of another process, which has ", what);
    waits = true;
    stop.WaitFor(kLook);
  }
}

// The agent of the task's former script may still be there, to hand its shard over, and, if it led
// the job, for a moment more: it closes its address before it gives the model directory back, whose
// lock would refuse this one for good. What needs them tells of other reasons why they are taken.
void AwaitPredecessor(const RoleContext& context, const StopSignal& stop) {
  const std::string address = context.cluster.ListenAddress();
  AwaitFree(
      address, [&] { return IsTaken(address); }, context.leave_within, stop);
  const std::string& model_dir = context.config.checkpoint().model_dir();
  if (!context.cluster.IsChief() || model_dir.empty()) return;
  const std::string lock = JobLockPath(model_dir);
  const auto is_locked = [&lock] {
    return absl::IsAlreadyExists(FileSystem::Real()->TryLock(lock).status());
  };
  AwaitFree(model_dir, is_locked, kLongestEnd, stop);
}

}  // namespace

absl::Status RunHostingAgent(const RoleContext& context, const AgentFlags& flags,
                             const LeaderFlags& leader, StopSignal* stop) {
  RETURN_IF_ERROR(CheckForScript(context, flags));
  AwaitPredecessor(context, *stop);
  const Trainer trainer = TrainerFor(flags);
  if (context.cluster.IsChief()) {
    ASSIGN_OR_RETURN(const std::optional<ProposedJob> job, JobOfScript(context, flags, stop));
    return RunLeader(context, leader, trainer, job.has_value() ? &*job : nullptr, stop);
  }
  const Introduction introduce = [&](ChiefService* chief, const StopSignal* ended) {
    return ProposeJobOf(context, flags, chief, ended);
  };
  return RunHostingWorker(context, flags.worker, leader.shard, trainer, introduce, stop);
}

}  // namespace keelson
