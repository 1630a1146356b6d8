// A whole job in this process over gRPC on the loopback interface: servers, workers, a chief and
// an evaluator, each with its own thread and stop signal, and each to be killed and started again.
// Without parameter servers the shards are those of the workers, who call their own ones directly.
#ifndef KEELSON_TESTS_SUPPORT_LOCAL_CLUSTER_H_
#define KEELSON_TESTS_SUPPORT_LOCAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/lifecycle/chief.h"
#include "chief/service/chief_grpc_service.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/device/device_group.h"
#include "core/rpc/server.h"
#include "core/startup/role_program.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"
#include "testing/services/faulty_chief_service.h"
#include "testing/services/faulty_parameter_control.h"
#include "tests/support/ports.h"
#include "tests/support/work_gate.h"

namespace keelson {

// A small network on a few generated digits: 48 steps of 8 records, a snapshot every 16 steps.
v1::TrainConfig SmallConfig(const std::string& model_dir);

// The same with 200 steps.
v1::TrainConfig LongerConfig(const std::string& model_dir);

// Fails the test when something cannot be started. Used by one thread.
class LocalCluster {
 public:
  struct Options {
    int servers = 1;
    int workers = 1;
    bool evaluator = false;
    v1::TrainConfig config;  // final, with a model directory
    int lease_seconds = 3;
    // The device of each worker; empty: a CPU with one thread.
    std::function<absl::StatusOr<std::unique_ptr<DeviceGroup>>()> open_devices = {};
    // The cluster has no parameter servers: shard s is that of the task that trains as number s.
    bool collective = false;
    // The chief trains too, as the first one.
    bool chief_trains = false;

    // So many of the `servers`, the last ones, are the shards of the workers, beside parameter
    // servers.
    int worker_shards = 0;

    // Without parameter servers.
    static Options Collective(bool chief_trains, int workers, const v1::TrainConfig& config);
    // With parameter servers and a shard at each worker.
    static Options Hybrid(int servers, int workers, const v1::TrainConfig& config);
  };

  // Starts nothing yet.
  explicit LocalCluster(Options options);
  // Stops all that runs.
  ~LocalCluster();

  // All members.
  void Start();

  // An empty server, on the port that its predecessor had.
  void StartServer(int index);
  // At once; calls in flight are cancelled.
  void KillServer(int index);

  void StartChief();
  // As a crash: nothing is written any more.
  void KillChief();
  // As by SIGTERM. Returns what Run returned.
  absl::Status StopChief();
  // Waits until Run returns by itself.
  absl::Status WaitForChief();

  void StartWorker(int index);
  // As a crash: it does not deregister.
  void KillWorker(int index);
  void StartEvaluator();

  // The job has run to its end: waits for chief, workers and evaluator; the chief and those
  // members that run return OK.
  void ExpectDone();

  // Waits until the chief counts at least `step` steps. Fails the test after 2 min.
  void WaitForStep(int64_t step);
  // Waits until a snapshot of at least this step is committed.
  void WaitForSnapshot(int64_t step);

  // Waits until the chief counts `count` workers, itself too if it trains, as alive. Fails the test
  // after 2 min.
  void WaitForWorkers(int count);

  WorkGate& gate() { return gate_; }
  Chief& chief() { return *chief_->chief; }
  FaultyChiefService& link_of_worker(int index) { return *workers_.at(index)->link; }
  v1::ShardStatus ShardStatus(int index) const;
  // The server has been notified of the end.
  bool ServerFinished(int index) const { return servers_.at(index)->handler.finished(); }

  std::string ChiefAddress() const;
  // A task of this cluster with an incarnation of its own.
  RoleContext ContextOf(Task task) const;

 private:
  struct ServerMember {
    ServerMember(const ParameterHandler::Options& options);

    StopSignal end;
    ParameterHandler handler;
    ParameterGrpcService service;
    std::unique_ptr<RpcServer> server;
  };
  struct ChiefMember {
    StopSignal stop;
    std::vector<std::unique_ptr<ParameterControl>> connections;  // to the servers
    std::vector<std::unique_ptr<FaultyParameterControl>> links;  // over them
    std::unique_ptr<Chief> chief;
    std::unique_ptr<ChiefGrpcService> service;
    std::unique_ptr<RpcServer> server;
    absl::Status status;
    std::thread thread;
  };
  // A worker or an evaluator.
  struct Member {
    StopSignal stop;
    RoleContext context;
    std::unique_ptr<ChiefService> connection;
    std::unique_ptr<FaultyChiefService> link;  // over it
    absl::Status status;
    std::thread thread;
  };

  // The tasks that train: the chief if it does, then the workers.
  std::vector<Task> Trainers() const;
  // The task that hosts the shard, if it is no parameter server's.
  std::optional<Task> HostOf(int shard) const;
  // The shard that the task hosts; null: none.
  BulkHandler* OwnShardOf(const RoleContext& context) const;
  std::string ServerAddress(int index) const;
  std::unique_ptr<Member> MakeMember(Task task);
  absl::Status RunWorker(Member* member) const;
  std::unique_ptr<Member> StartTraining(Task task);
  static absl::Status Join(std::unique_ptr<Member>* member);

  const Options options_;
  const ReservedPorts ports_;
  WorkGate gate_;
  std::vector<std::unique_ptr<ServerMember>> servers_;
  std::unique_ptr<ChiefMember> chief_;
  std::unique_ptr<Member> training_chief_;
  std::vector<std::unique_ptr<Member>> workers_;
  std::unique_ptr<Member> evaluator_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_LOCAL_CLUSTER_H_
