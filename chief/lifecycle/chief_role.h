// The chief's role as a main runs it: flags, data, connections, server, and the chief itself.
#ifndef KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_
#define KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/lifecycle/chief.h"
#include "core/base/stop_signal.h"
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

// A chief for these servers, with the data's number of records, which owns the model directory.
// Errors: TakeModelDirectory, the data, Chief::Create.
absl::StatusOr<std::unique_ptr<Chief>> MakeChief(const RoleContext& context,
                                                 const ChiefFlags& flags,
                                                 std::vector<ServerGroup::Server> servers,
                                                 StopSignal* stop);

// Runs the chief with its companions. A companion that fails ends the job with its error. The
// context gets the job's result.
absl::Status RunChief(const RoleContext& context, Chief* chief,
                      const std::vector<Companion>& companions, StopSignal* stop);

// The whole role in a cluster: connects to the servers, serves on the own address, runs. `stop` is
// raised when the job ends early.
absl::Status RunChiefRole(const RoleContext& context, const ChiefFlags& flags,
                          const std::vector<Companion>& companions, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_CHIEF_ROLE_H_
