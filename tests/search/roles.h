// The roles' own code as processes of a simulated world run it.
#ifndef KEELSON_TESTS_SEARCH_ROLES_H_
#define KEELSON_TESTS_SEARCH_ROLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/lifecycle/chief.h"
#include "chief/servers/announced_hosts.h"
#include "chief/servers/server_group.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/directory_owner.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/services/moving_control.h"
#include "core/client/services/parameter_client.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/task.h"
#include "keelson/v1/train_config.pb.h"
#include "ps_server/service/shard_handlers.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/job_rules.h"
#include "tests/search/network.h"
#include "tests/search/record_model.h"
#include "tests/search/scenario.h"
#include "tests/search/storage.h"
#include "worker/host_announcer.h"
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
  // A worker that hosts a shard.
  absl::Status RunHost(SimProcess* process);
  // What the process has of the model; raises `end` when the job is over.
  ShardHandlers* MakeShards(SimProcess* process, StopSignal* end);
  // Runs the chief, and what trains beside it.
  absl::Status Lead(SimProcess* process, Chief* chief, ShardHandlers* own, StopSignal* stop);
  absl::Status Train(SimProcess* process, ChiefService* chief, BulkHandler* own_shards,
                     StopSignal* stop);
  // Registers a process that listens already, where processes do; null: they do not.
  absl::StatusOr<std::unique_ptr<HostAnnouncer>> Register(SimProcess* process, int port,
                                                          StopSignal* stop);
  Task TaskOf(size_t node) const;
  // As the process of the node sees it at first.
  ClusterSpec ClusterOf(size_t node) const;
  // As the process sees it now.
  ClusterSpec ClusterOf(const SimProcess& process) const;
  ControlDeadlines HostDeadlines() const;
  // The chief's connections to the hosts of shards, one for each shard, by the host's task.
  using Connections = std::multimap<Task, std::shared_ptr<MovingControl>>;
  // `own`: what serves shards in the chief's process; null: it hosts none.
  std::vector<ServerGroup::Server> ServersOf(SimProcess* chief, ShardHandlers* own,
                                             Connections* connections);
  // The shard at the host of this node.
  ServerGroup::Server PlaceOf(SimProcess* chief, ShardHandlers* own, size_t shard, size_t node,
                              Connections* connections);
  // Who takes announcements, and has chief and connections follow them.
  AnnouncedHosts* FollowHosts(Chief* chief, const Connections* connections) const;
  SimFileSystem* NewFileSystem(SimProcess* process);
  absl::StatusOr<std::shared_ptr<DirectoryOwner>> TakeDirectory(FileSystem* file_system,
                                                                StopSignal* stop);
  // `own_shards`: takes the calls of shards in the process itself; null: it hosts none.
  absl::StatusOr<std::unique_ptr<ParameterClient>> MakeClient(SimProcess* process,
                                                              BulkHandler* own_shards,
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
