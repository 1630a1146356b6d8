// What serves a shard, as a transport to other processes calls it.
#ifndef KEELSON_CORE_CLIENT_SERVICES_BULK_SERVER_H_
#define KEELSON_CORE_CLIENT_SERVICES_BULK_SERVER_H_

#include <string>

namespace keelson {

struct BulkServer {
  std::string name;     // for error texts: "ps-0"
  std::string address;  // "host:port"

  friend bool operator==(const BulkServer&, const BulkServer&) = default;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_BULK_SERVER_H_
