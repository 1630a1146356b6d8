// The roles' own code as processes of a simulated world run it.
#ifndef KEELSON_TESTS_SEARCH_ROLES_H_
#define KEELSON_TESTS_SEARCH_ROLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/servers/server_group.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/directory_owner.h"
#include "core/client/services/parameter_client.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/job_rules.h"
#include "tests/search/network.h"
#include "tests/search/record_model.h"
#include "tests/search/scenario.h"
#include "tests/search/storage.h"
#include "worker/worker.h"

namespace keelson {

// How long a member, or the owner of the model directory, may be silent.
inline constexpr absl::Duration kSimLease = absl::Seconds(3);

// Not thread-safe.
class SimRoles {
 public:
  // All outlive the roles.
  struct Surroundings {
    const Scenario* scenario;
    const v1::TrainConfig* config;
    FiberScheduler* scheduler;
    SimDisk* disk;
    SimNetwork* network;
    JobRules* rules;
    // Called by each process around its operations on files; it may kill it.
    SimNetwork::AtPoint at;
    // Whether another process has taken this one's place.
    std::function<bool(const SimProcess*)> is_replaced;
  };
  explicit SimRoles(const Surroundings& around);

  // Runs the role of the process's node, in a thread of the process, until it ends. Returns with
  // what it ends.
  absl::Status Run(SimProcess* process);

 private:
  absl::Status RunChief(SimProcess* process);
  absl::Status RunServer(SimProcess* process);
  absl::Status RunWorker(SimProcess* process);
  absl::Status RunEvaluator(SimProcess* process);
  std::vector<ServerGroup::Server> ServersOf(SimProcess* chief);
  SimFileSystem* NewFileSystem(SimProcess* process);
  absl::StatusOr<std::shared_ptr<DirectoryOwner>> TakeDirectory(FileSystem* file_system,
                                                                StopSignal* stop);
  absl::StatusOr<std::unique_ptr<ParameterClient>> MakeClient(SimProcess* process,
                                                              ParameterClientRequest request);

  const Scenario& scenario_;
  const v1::TrainConfig& config_;
  FiberScheduler* const scheduler_;
  SimDisk* const disk_;
  SimNetwork* const network_;
  JobRules* const rules_;
  const SimNetwork::AtPoint at_;
  const std::function<bool(const SimProcess*)> is_replaced_;
  const std::string model_dir_;
  const uint64_t config_hash_;
  const RecordDataset dataset_;
  // Of one record.
  const RecordDataset eval_dataset_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_ROLES_H_
