#include "bench/rows/row_cluster.h"

#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

constexpr absl::Duration kFillTimeout = absl::Minutes(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> StartEmptyServer(const RowClusterOptions& options) {
  return Peer::Start({{"role", "parameter_server"},
                      {"transport", "tcp"},
                      {"handler", Name(Handler::kAdam)},
                      {"io_threads", options.io_threads},
                      {"model_dir", options.model_dir}});
}

absl::StatusOr<std::unique_ptr<RowCluster>> RowCluster::Start(const RowClusterOptions& options) {
  std::unique_ptr<RowCluster> cluster(new RowCluster(options));
  const bool own = options.system == RowSystem::kKeelson;
  ASSIGN_OR_RETURN(cluster->server_,
                   own ? StartEmptyServer(options) : Peer::Start({{"role", "redis_server"}}));
  RETURN_IF_ERROR(cluster->AddWorker());
  Peer* const worker = cluster->worker();
  if (own) RETURN_IF_ERROR(worker->Call({{"do", "initialize"}}, kFillTimeout).status());
  RETURN_IF_ERROR(worker->Call({{"do", "fill"}}, kFillTimeout).status());
  return cluster;
}

absl::Status RowCluster::AddWorker() {
  ASSIGN_OR_RETURN(workers_.emplace_back(),
                   Peer::Start({{"role", "row_worker"},
                                {"system", Name(options_.system)},
                                {"address", address()},
                                {"dim", options_.dim},
                                {"rows", options_.rows},
                                {"expire_after_steps", options_.expire_after_steps},
                                {"index", workers_.size()}}));
  return absl::OkStatus();
}

absl::StatusOr<Contender> RowCluster::ContenderOf(const RowScenario& scenario) {
  const auto wanted = static_cast<size_t>(scenario.workers);
  while (workers_.size() < wanted) RETURN_IF_ERROR(AddWorker());
  Contender contender;
  for (size_t w = 0; w < wanted; ++w) contender.clients.push_back(workers_[w].get());
  // What is behind the process of Redis' server is not its child's processor time.
  if (options_.system == RowSystem::kKeelson) contender.servers = {server_.get()};
  contender.command = {{"direction", static_cast<int>(scenario.direction)},
                       {"law", Name(scenario.law)}};
  return contender;
}

}  // namespace keelson::bench
