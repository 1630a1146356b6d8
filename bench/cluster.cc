#include "bench/cluster.h"

#include <algorithm>

#include "bench/models.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

constexpr absl::Duration kInitializeTimeout = absl::Minutes(2);

int64_t SlotsOf(Handler handler) { return handler == Handler::kAdam ? 2 : 0; }

}  // namespace

absl::StatusOr<Cluster::Servers*> Cluster::ServersOf(const Scenario& scenario) {
  // Servers that are there already are the same for all handlers: each starts them over.
  Servers* const servers = &servers_[scenario.handler];
  if (!servers->addresses.empty()) return servers;
  if (!options_.addresses.empty()) {
    servers->addresses = options_.addresses;
    return servers;
  }
  for (int i = 0; i < scenario.servers; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Peer> peer,
                     Peer::Start({{"role", "parameter_server"},
                                  {"transport", TransportName(options_.transport)},
                                  {"handler", Name(scenario.handler)},
                                  {"io_threads", options_.server_io_threads},
                                  {"model_dir", options_.model_dir}}));
    servers->addresses.push_back(peer->ready().at("address").get<std::string>());
    servers->peers.push_back(std::move(peer));
  }
  return servers;
}

absl::StatusOr<Contender> Cluster::Start(const Scenario& scenario) {
  ASSIGN_OR_RETURN(Servers* const servers, ServersOf(scenario));
  Contender contender;
  contender.command = json::object();
  for (const auto& peer : servers->peers) contender.servers.push_back(peer.get());
  for (int i = 0; i < scenario.workers; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Peer> worker,
                     Peer::Start({{"role", "worker"},
                                  {"index", workers_.size()},
                                  {"scenario", ToJson(scenario)},
                                  {"addresses", servers->addresses}}));
    contender.clients.push_back(worker.get());
    workers_.push_back(std::move(worker));
  }
  if (!servers->initialized) {
    RETURN_IF_ERROR(
        contender.clients[0]->Call({{"do", "initialize"}}, kInitializeTimeout).status());
    servers->initialized = true;
  }
  return contender;
}

Memory Cluster::MemoryOf(const Contender& contender, const Scenario& scenario) const {
  Memory memory;
  const Placement placement = PlaceModel(scenario.model, scenario.message_bytes, scenario.servers);
  for (const VariableSpec& variable : placement.variables()) memory.values += variable.bytes();
  memory.slots = memory.values * SlotsOf(scenario.handler);
  for (const Peer* server : contender.servers)
    memory.server_resident += server->PeakResidentBytes();
  for (const Peer* worker : contender.clients) {
    memory.worker_resident = std::max(memory.worker_resident, worker->PeakResidentBytes());
  }
  return memory;
}

}  // namespace keelson::bench
