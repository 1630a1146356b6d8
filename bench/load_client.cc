#include "bench/load_client.h"

#include <utility>

#include "bench/message_client.h"
#include "bench/models.h"
#include "bench/step_client.h"
#include "core/cluster/task.h"
#include "core/cluster/task_proto.h"

namespace keelson::bench {

VariableFormats FormatsOf(Wire wire) {
  VariableFormats formats;
  if (wire == Wire::kFloat32) return formats;
  formats.push = wire == Wire::kInt8 ? WireFormat::kInt8 : WireFormat::kBfloat16;
  formats.pull = WireFormat::kBfloat16;
  return formats;
}

keelson::v1::MemberList AllClients() {
  keelson::v1::MemberList list;
  list.set_epoch(1);
  LoadPlan plan;
  for (plan.client = 0; plan.client < kMostClients; ++plan.client) {
    keelson::v1::MemberList::Member* const member = list.add_members();
    *member->mutable_task() = TaskToProto({Role::kWorker, 0});
    member->set_incarnation(plan.membership().incarnation);
    member->set_membership_secret(plan.membership().secret);
  }
  return list;
}

LoadPlan PlanLoad(const Scenario& scenario, std::vector<std::string> addresses) {
  LoadPlan plan;
  plan.placement =
      PlaceModel(scenario.model, scenario.message_bytes, static_cast<int>(addresses.size()));
  plan.formats.assign(plan.placement.variables().size(), FormatsOf(scenario.wire));
  plan.scenario = scenario;
  plan.addresses = std::move(addresses);
  return plan;
}

absl::StatusOr<std::unique_ptr<LoadClient>> MakeLoadClient(const LoadPlan& plan) {
  if (plan.scenario.workload == Workload::kSteps) return StepClient::Create(plan);
  return MakeMessageClient(plan);
}

}  // namespace keelson::bench
