#include "tests/support/counting_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/cluster/task.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

constexpr uint64_t kChiefIncarnation = 77;

}  // namespace

void MessageCount::Note() {
  MutexLock lock(&mu_);
  ++total_;
  more_.NotifyAll();
}

int64_t MessageCount::total() const {
  MutexLock lock(&mu_);
  return total_;
}

bool MessageCount::WaitFor(int64_t total, absl::Duration limit) const {
  const absl::Time deadline = absl::Now() + limit;
  MutexLock lock(&mu_);
  while (total_ < total) {
    if (absl::Now() >= deadline) return false;
    more_.WaitFor(&mu_, deadline - absl::Now());
  }
  return true;
}

CountingCluster::CountingCluster(std::vector<VariableSpec> variables, int processes)
    : variables_(std::move(variables)),
      placement_(Placement::Compute(variables_, static_cast<size_t>(processes))),
      ports_(processes) {}

v1::RequestHeader CountingCluster::ChiefHeader() {
  v1::RequestHeader header;
  header.mutable_task()->set_role(v1::ROLE_CHIEF);
  header.set_incarnation(kChiefIncarnation);
  return header;
}

v1::InitializeShardRequest CountingCluster::ShardDescription() const {
  v1::InitializeShardRequest request;
  *request.mutable_header() = ChiefHeader();
  request.set_config_hash(kConfigHash);
  *request.mutable_placement() = placement_.ToProto();
  request.set_placement_fingerprint(placement_.Fingerprint());
  request.mutable_optimizer()->mutable_sgd();
  request.mutable_learning_rate()->set_base(1);
  return request;
}

void CountingCluster::Join(int worker, const MembershipId& id) {
  v1::MemberList::Member* const member = members_.add_members();
  *member->mutable_task() = TaskToProto({Role::kWorker, worker});
  member->set_incarnation(id.incarnation);
  member->set_membership_secret(id.secret);
  members_.set_epoch(members_.epoch() + 1);
  Announce();
}

void CountingCluster::Leave(uint64_t incarnation) {
  auto* const members = members_.mutable_members();
  members->erase(std::remove_if(members->begin(), members->end(),
                                [&](const auto& m) { return m.incarnation() == incarnation; }),
                 members->end());
  members_.set_epoch(members_.epoch() + 1);
  Announce();
}

}  // namespace keelson
