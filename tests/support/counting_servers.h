// Parameter servers that count: a push adds 1 to every element of the blocks that it covers. So
// each block says how many pushes it has applied, and this class knows how many it must have.
#ifndef KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_
#define KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/cluster/placement.h"
#include "core/rpc/server.h"
#include "core/tensor/variable.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"
#include "tests/support/counting_cluster.h"

namespace keelson {

// The expected content of a block: its restored content, and every (incarnation, sequence) that its
// server has acknowledged since. Thread-safe.
class CountingTruth {
 public:
  explicit CountingTruth(const Placement* placement);

  // A push was answered with OK.
  void Acknowledge(const BulkRequest& push);
  // The blocks of a shard have the content of a snapshot; empty: nothing applied yet.
  void Restore(int shard, const v1::ShardState& state);

  int64_t Expected(size_t partition, size_t block) const;
  // For an incarnation, the fewest and the most pushes that any block has acknowledged since it was
  // restored.
  struct Extremes {
    int64_t fewest = 0;
    int64_t most = 0;
  };
  Extremes AcknowledgedOf(uint64_t incarnation) const;

 private:
  struct Block {
    int64_t restored = 0;
    std::map<uint64_t, uint64_t> restored_sequences;                // by incarnation
    std::map<uint64_t, std::set<uint64_t>> acknowledged_sequences;  // by incarnation
  };

  const Placement* const placement_;
  mutable Mutex mu_;
  // [partition][block]
  std::vector<std::vector<Block>> blocks_ ABSL_GUARDED_BY(mu_);
};

// Real handlers behind gRPC on the loopback interface, which apply each push at once.
class CountingServers : public CountingCluster {
 public:
  // Files go to a directory of their own.
  CountingServers(std::vector<VariableSpec> variables, int servers);

  const CountingTruth& truth() const { return truth_; }

  std::vector<int> Places() const override;
  std::map<size_t, BulkHandler*> Handlers(int process) const override;

  // A server goes on from the newest snapshot (the initial values without one), which is taken of
  // all servers, and needs them.
  bool MayKill() const override { return true; }
  bool GoesOnWithout() const override { return false; }
  void Kill(int process) override;
  void Restore(int process) override;
  void TakeSnapshot() override;
  void ResetConnections() override {}

  void NoteDead(uint64_t) override {}
  void Finish() override { finishing_ = true; }
  bool finished() const override { return finishing_; }
  void ExpectTruth() override;

  std::optional<CountedStep> NextStep(uint64_t incarnation) override;
  bool Holds(uint64_t, const CountedStep&) const override { return true; }
  void NoteEnd(uint64_t, const CountedStep&, const PushResult&) override {}

 private:
  // The handler, and a note of what it acknowledges.
  class Witness;
  struct Server {
    Server(CountingTruth* truth, MessageCount* messages, const std::string& model_dir);
    ~Server();

    StopSignal end;
    ParameterHandler handler;
    std::unique_ptr<Witness> witness;
    ParameterGrpcService service;
    std::unique_ptr<RpcServer> rpc;
  };

  void Start(int server);
  void Initialize(int server);
  void Announce() override;
  // The state of a server in the newest snapshot.
  v1::ShardState StateInSnapshot(int server) const;
  void ExpectTruthOf(int server);

  const std::string directory_;
  CountingTruth truth_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::atomic<bool> finishing_{false};
  std::atomic<int64_t> steps_{0};
  int64_t snapshots_ = 0;  // the newest one's step
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_
