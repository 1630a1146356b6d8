// Parameter servers that count: a push adds 1 to every element of the blocks that it covers. So
// each block says how many pushes it has applied, and this class knows how many it must have.
#ifndef KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_
#define KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/rpc/server.h"
#include "core/tensor/variable.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"
#include "tests/support/ports.h"

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
  // Messages, repeated ones too.
  int64_t messages() const;
  // Waits until there are this many; false after `limit`.
  bool WaitForMessages(int64_t messages, absl::Duration limit) const;

 private:
  struct Block {
    int64_t restored = 0;
    std::map<uint64_t, uint64_t> restored_sequences;                // by incarnation
    std::map<uint64_t, std::set<uint64_t>> acknowledged_sequences;  // by incarnation
  };

  const Placement* const placement_;
  mutable Mutex mu_;
  mutable CondVar more_;
  // [partition][block]
  std::vector<std::vector<Block>> blocks_ ABSL_GUARDED_BY(mu_);
  int64_t messages_ ABSL_GUARDED_BY(mu_) = 0;
};

// Real handlers behind gRPC on the loopback interface, with initial values 0. Fails the test when
// something cannot be done. Used by one thread.
class CountingServers {
 public:
  // Files go to a directory of their own.
  CountingServers(std::vector<VariableSpec> variables, int servers);

  const std::vector<VariableSpec>& variables() const { return variables_; }
  const Placement& placement() const { return placement_; }
  const CountingTruth& truth() const { return truth_; }
  int size() const { return static_cast<int>(servers_.size()); }
  int port(int server) const { return ports_[server]; }
  // Calls of the process that holds the shard; until the server is killed.
  BulkHandler* handler(int server) const;
  // The epoch that the next Join or Leave begins.
  uint64_t next_epoch() const { return members_.epoch() + 1; }

  // Takes the snapshot of all servers, which must run, from which servers are restored.
  void TakeSnapshot();
  // At once; calls under way are cancelled.
  void Kill(int server);
  // A new server on the old one's port, with the newest snapshot (the initial values without one).
  void Restore(int server);
  // Announces a worker to all servers, also to those that are restored later; its pushes are taken
  // from now on.
  void Join(int worker, const MembershipId& id);
  // Its pushes are refused from now on.
  void Leave(uint64_t incarnation);

  // Fails unless every element of every block holds exactly what it must.
  void ExpectTruth();

 private:
  // The handler, and a note of what it acknowledges.
  class Witness;
  struct Server {
    Server(CountingTruth* truth, const std::string& model_dir);
    ~Server();

    StopSignal end;
    ParameterHandler handler;
    std::unique_ptr<Witness> witness;
    ParameterGrpcService service;
    std::unique_ptr<RpcServer> rpc;
  };

  void Start(int server);
  void Initialize(int server);
  // Begins an epoch of `members_`.
  void Announce();
  // The state of a server in the newest snapshot.
  v1::ShardState StateInSnapshot(int server) const;
  void ExpectTruthOf(int server);

  const std::vector<VariableSpec> variables_;
  const Placement placement_;
  const std::string directory_;
  const ReservedPorts ports_;
  CountingTruth truth_;
  std::vector<std::unique_ptr<Server>> servers_;
  v1::MemberList members_;
  int64_t snapshots_ = 0;  // the newest one's step
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTING_SERVERS_H_
