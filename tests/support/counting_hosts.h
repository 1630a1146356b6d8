// Processes without parameter servers that count: each is the home of a shard and has the replica
// of another one, and synchronous steps go on while one of them is away (ADR 0043).
#ifndef KEELSON_TESTS_SUPPORT_COUNTING_HOSTS_H_
#define KEELSON_TESTS_SUPPORT_COUNTING_HOSTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/servers/server_group.h"
#include "chief/servers/server_supervisor.h"
#include "chief/servers/shard_storage.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/server.h"
#include "ps_server/service/hosted_shards.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"
#include "tests/support/counted_rounds.h"
#include "tests/support/counting_cluster.h"
#include "tests/support/fault_proxy.h"

namespace keelson {

// Real handlers behind gRPC on the loopback interface, and what a chief does for them: the group of
// its servers with their replicas, its supervision and its commits of rounds. There is no snapshot.
class CountingHosts : public CountingCluster {
 public:
  CountingHosts(std::vector<VariableSpec> variables, int hosts);
  ~CountingHosts() override;

  const CountedRounds& rounds() const { return rounds_; }
  // How often a shard was served elsewhere from then on, because its host was lost, and because its
  // home was there again.
  int lost() const;
  int went_home() const { return went_home_; }

  std::vector<int> Places() const override;
  std::map<size_t, BulkHandler*> Handlers(int process) const override;

  // Every shard is at home, and has a replica that is not of a process that was killed since.
  bool MayKill() const override;
  bool GoesOnWithout() const override { return true; }
  void Kill(int process) override;
  void Restore(int process) override { Start(process); }
  void TakeSnapshot() override {}
  void ResetConnections() override;

  void NoteDead(uint64_t incarnation) override { rounds_.NoteDead(incarnation); }
  void Finish() override { rounds_.Finish(); }
  bool finished() const override { return rounds_.finished(); }
  // At shards and replicas, which are also equal.
  void ExpectTruth() override;

  std::optional<CountedStep> NextStep(uint64_t incarnation) override {
    return rounds_.NextStep(incarnation);
  }
  bool Holds(uint64_t incarnation, const CountedStep& step) const override {
    return rounds_.Holds(incarnation, step);
  }
  void NoteEnd(uint64_t incarnation, const CountedStep& step, const PushResult& result) override {
    rounds_.NoteEnd(incarnation, step, result);
  }

 private:
  class Witness;
  struct Host {
    StopSignal end;
    std::vector<std::unique_ptr<ParameterHandler>> handlers;  // its own shard's first
    std::unique_ptr<HostedShards> shards;
    std::unique_ptr<Witness> witness;
    std::unique_ptr<ParameterGrpcService> service;
    std::unique_ptr<RpcServer> rpc;

    ~Host();
  };

  void Announce() override;
  void Start(int process);
  ServerGroup::Server ServerAt(int process, size_t shard);
  std::vector<ServerGroup::Server> Servers();
  ServerSupervisor::Job Job();
  void CommitRounds();
  // The content of the shard as it is at this process. Replicas do not know whose pushes a round
  // has.
  std::string ReadAt(int process, size_t shard) const;

  std::vector<std::unique_ptr<Host>> hosts_;
  // To each process, for the chief and the other hosts.
  std::vector<std::unique_ptr<FaultProxy>> links_;
  std::vector<std::shared_ptr<ParameterControl>> connections_;
  std::vector<std::unique_ptr<ParameterControl>> controls_;  // of single shards
  CountedRounds rounds_;
  // By process: how often it was found lost, and what that must come to after its kill.
  std::vector<std::atomic<int>> lost_;
  std::vector<int> kills_to_notice_;
  std::atomic<int> went_home_{0};

  mutable Mutex mu_;
  v1::MemberList announced_ ABSL_GUARDED_BY(mu_);

  StopSignal stop_;
  ServerStorage storage_;
  std::unique_ptr<ServerGroup> group_;
  std::unique_ptr<ServerSupervisor> supervisor_;
  Thread committer_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTING_HOSTS_H_
