#include "bench/worker_role.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/load_client.h"
#include "bench/message_plan.h"
#include "bench/server_start.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

size_t LargestMessage(const LoadPlan& plan) {
  if (plan.scenario.workload == Workload::kKeyValues) {
    return plan.scenario.message_bytes;
  }
  size_t largest = 0;
  for (const auto& messages : PlanMessages(plan)) {
    for (const PlannedMessage& message : messages) {
      largest = std::max(largest, plan.scenario.direction == Direction::kPull ? message.pull_bytes
                                                                              : message.push_bytes);
    }
  }
  return largest;
}

class Worker : public PeerRole {
 public:
  Worker(LoadPlan plan, std::vector<std::unique_ptr<LoadClient>> clients)
      : plan_(std::move(plan)),
        clients_(std::move(clients)),
        pool_(static_cast<int>(clients_.size()) - 1) {}

  json Ready() const override { return {{"message_bytes", LargestMessage(plan_)}}; }

  absl::StatusOr<json> Do(const json& command) override {
    if (command.at("do").get<std::string>() == "run") return Run(WindowOf(command));
    RETURN_IF_ERROR(InitializeServers(plan_));
    return json::object();
  }

 private:
  absl::StatusOr<json> Run(const Window& window) {
    std::vector<absl::Status> statuses(clients_.size());
    std::vector<ClientReport> reports(clients_.size());
    pool_.RunAll(clients_.size(), [&](size_t i) {
      auto report = clients_[i]->Run(window);
      if (report.ok()) reports[i] = *std::move(report);
      statuses[i] = report.status();
    });
    ClientReport total;
    for (size_t c = 0; c < clients_.size(); ++c) {
      total.Add(reports[c]);
      if (statuses[c].ok()) continue;
      // One of many clients may fail without the others.
      if (clients_.size() == 1) return statuses[c];
      ++total.failures;
    }
    return ToJson(total);
  }

  const LoadPlan plan_;
  const std::vector<std::unique_ptr<LoadClient>> clients_;
  ThreadPool pool_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerRole>> MakeWorker(const json& spec) {
  LoadPlan plan = PlanLoad(ScenarioFromJson(spec.at("scenario")),
                           spec.at("addresses").get<std::vector<std::string>>());
  std::vector<std::unique_ptr<LoadClient>> clients;
  plan.client = spec.at("index").get<int>() * plan.scenario.clients_per_worker;
  for (int i = 0; i < plan.scenario.clients_per_worker; ++i, ++plan.client) {
    ASSIGN_OR_RETURN(clients.emplace_back(), MakeLoadClient(plan));
  }
  return std::make_unique<Worker>(std::move(plan), std::move(clients));
}

}  // namespace keelson::bench
