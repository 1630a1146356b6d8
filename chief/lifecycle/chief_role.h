// The chief's role as a main runs it: flags, data, connections, server, and the chief itself.
#ifndef KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_
#define KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/lifecycle/chief.h"
#include "chief/proposal/job_proposals.h"
#include "chief/proposal/received_values.h"
#include "core/base/stop_signal.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/access.h"
#include "core/rpc/server.h"
#include "core/startup/role_program.h"

namespace CLI {
class App;
}

namespace keelson {

struct ChiefFlags {
  int startup_timeout_seconds = 600;
  int lease_seconds = 10;
  std::string checkpoint_writer = "servers";  // or "chief"
  std::string auth_token_file;                // empty: the job has no token
  int owner_lease_seconds = 20;
  bool accept_new_config = false;
};

void AddChiefFlags(CLI::App* app, ChiefFlags* flags);

// Work that a main puts beside the chief in its process, against the chief's own service: a worker,
// an evaluator. Each runs on a thread and ends with the job, or when `stop` is raised.
using Companion = std::function<absl::Status(ChiefService* chief, StopSignal* stop)>;

// What the chief's process holds of the model, in a cluster without parameter servers.
struct ChiefShard {
  // Returns what serves this shard, or is its replica; null: the process holds none of it. Outlives
  // the chief.
  std::function<ParameterControl*(size_t shard)> control;
  // Returns the shell by which the chief's own server serves the shard too. `guard` outlives it.
  std::function<ServiceShell(const AccessGuard* guard)> make_shell;
};

// What a main puts around the chief in its process.
struct ChiefSurroundings {
  std::vector<Companion> companions;
  std::optional<ChiefShard> shard;
  // What the script has said whose agent this process is, of a cluster without parameter servers;
  // null: another one's that comes, if the context says that a script decides.
  const ProposedJob* job = nullptr;
};

// A chief for these servers, with the data's number of records, which owns the model directory and
// puts `proposed` there (null: nothing). Errors: TakeModelDirectory, the data, Chief::Create.
absl::StatusOr<std::unique_ptr<Chief>> MakeChief(const RoleContext& context,
                                                 const ChiefFlags& flags,
                                                 std::vector<ServerGroup::Server> servers,
                                                 ReceivedValues* proposed, StopSignal* stop);

// Runs the chief with its companions. A companion that fails ends the job with its error. The
// context gets the job's result.
absl::Status RunChief(const RoleContext& context, Chief* chief,
                      const std::vector<Companion>& companions, StopSignal* stop);

// The whole role in a cluster: waits for a script where one says what the job is, and has not said
// it already, connects to the servers, serves on the own address, runs. Processes that the cluster
// does not list tell it where they are meanwhile, and are servers that do not answer until then
// (AnnouncedHosts). `stop` is raised when the job ends early. Errors also of AwaitProposedJob.
absl::Status RunChiefRole(const RoleContext& context, const ChiefFlags& flags,
                          const ChiefSurroundings& surroundings, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_
