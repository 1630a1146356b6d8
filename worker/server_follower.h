// A client that goes where the shards go.
#ifndef KEELSON_WORKER_SERVER_FOLLOWER_H_
#define KEELSON_WORKER_SERVER_FOLLOWER_H_

#include <functional>
#include <string>
#include <vector>

#include "core/client/services/bulk_server.h"
#include "core/client/services/parameter_client.h"
#include "worker/chief_session.h"
#include "worker/server_news.h"

namespace keelson {

// Names the servers at these addresses, by shard, for a client.
using ServerNaming = std::function<std::vector<BulkServer>(const std::vector<std::string>&)>;

// Has the client go to the shards' servers wherever the chief says that they are, for as long as
// this lives. Both outlive it.
class ServerFollower {
 public:
  ServerFollower(ChiefSession* session, ParameterClient* client, const ServerNaming& servers_at)
      : session_(session) {
    session_->WatchServers([client, servers_at](const ServerNews::Addresses& addresses) {
      client->SetServers(servers_at(addresses));
    });
  }
  ~ServerFollower() { session_->WatchServers(nullptr); }

 private:
  ChiefSession* const session_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SERVER_FOLLOWER_H_
