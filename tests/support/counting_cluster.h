// What the clients of tests that count pushes work with: processes that hold the shards of a model,
// and who hands out steps.
#ifndef KEELSON_TESTS_SUPPORT_COUNTING_CLUSTER_H_
#define KEELSON_TESTS_SUPPORT_COUNTING_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_client.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/tensor/variable.h"
#include "keelson/v1/parameter_service.pb.h"
#include "tests/support/ports.h"

namespace keelson {

// Messages of pushes that were answered with OK, repeated ones too. Thread-safe.
class MessageCount {
 public:
  void Note();
  int64_t total() const;
  // Waits until there are so many; false after `limit`.
  bool WaitFor(int64_t total, absl::Duration limit) const;

 private:
  mutable Mutex mu_;
  mutable CondVar more_;
  int64_t total_ ABSL_GUARDED_BY(mu_) = 0;
};

// A step of one client, whose gradients are this value in every element.
struct CountedStep {
  int64_t step = 0;
  float gradient = -1;
  std::optional<Aggregation> aggregation = std::nullopt;
  uint64_t lease = 0;
  // What every element of the model is as long as the client holds the step; not set: unknown.
  std::optional<float> values = std::nullopt;
};

// The model has the initial values 0. Fails the test when something cannot be done. The calls of
// clients are thread-safe, all others are made by one thread.
class CountingCluster {
 public:
  CountingCluster(std::vector<VariableSpec> variables, int processes);
  virtual ~CountingCluster() = default;

  const std::vector<VariableSpec>& variables() const { return variables_; }
  const Placement& placement() const { return placement_; }
  const MessageCount& messages() const { return messages_; }
  // Of processes, each of which is the home of the shard of its number.
  int size() const { return static_cast<int>(placement_.num_shards()); }
  int port(int process) const { return ports_[process]; }
  // By shard, the process where it is reached.
  virtual std::vector<int> Places() const = 0;
  // Calls, by shard, within the process; until it is killed.
  virtual std::map<size_t, BulkHandler*> Handlers(int process) const = 0;
  // The epoch that the next Join or Leave begins.
  uint64_t next_epoch() const { return members_.epoch() + 1; }

  // Whether a process that is killed now takes nothing with it that cannot be had again.
  virtual bool MayKill() const = 0;
  // Whether others go on while a process is away.
  virtual bool GoesOnWithout() const = 0;
  // At once; calls under way are cancelled.
  virtual void Kill(int process) = 0;
  // A new process on the port of the one that was killed.
  virtual void Restore(int process) = 0;
  virtual void TakeSnapshot() = 0;
  // Resets the connections between processes that hold shards, and those of the chief.
  virtual void ResetConnections() = 0;

  // Announces a worker to all processes, also to those that are restored later; its pushes are
  // taken from now on.
  void Join(int worker, const MembershipId& id);
  // Its pushes are refused from now on.
  void Leave(uint64_t incarnation);
  // The client of this incarnation is dead: a NextStep of it that waits returns nothing.
  virtual void NoteDead(uint64_t incarnation) = 0;

  // No steps are handed out any more but those that others wait for.
  virtual void Finish() = 0;
  // All steps have ended that anyone waits for.
  virtual bool finished() const = 0;
  // Fails unless every element of every block holds exactly what it must.
  virtual void ExpectTruth() = 0;

  // ---- Calls of clients.

  // Nothing: there are no more steps for this client.
  virtual std::optional<CountedStep> NextStep(uint64_t incarnation) = 0;
  // Whether the step is still the client's.
  virtual bool Holds(uint64_t incarnation, const CountedStep& step) const = 0;
  // The step's exchange has ended.
  virtual void NoteEnd(uint64_t incarnation, const CountedStep& step, const PushResult& result) = 0;

 protected:
  static constexpr uint64_t kConfigHash = 1;
  static v1::RequestHeader ChiefHeader();
  // For any shard, without members: an update adds to each element the negative of its gradient.
  v1::InitializeShardRequest ShardDescription() const;
  const v1::MemberList& members() const { return members_; }
  // Members have begun an epoch.
  virtual void Announce() = 0;

  MessageCount messages_;

 private:
  const std::vector<VariableSpec> variables_;
  const Placement placement_;
  const ReservedPorts ports_;
  v1::MemberList members_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTING_CLUSTER_H_
