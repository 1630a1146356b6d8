// How a client exchanges gradients and values with the servers.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_OPTIONS_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "core/client/services/bulk_server.h"
#include "core/client/services/retry.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"

namespace keelson {

struct ExchangeOptions {
  Task self;
  MembershipId membership;
  uint64_t member_epoch = 0;  // v1::RequestHeader
  uint64_t placement_fingerprint = 0;
  RetryOptions retry;
  int max_in_flight = 4;
  // What serves each shard at first; empty: nobody knows, and all move with the first SetServers.
  std::vector<BulkServer> servers;
  // Each request says its shard (v1::RequestHeader), for servers that host several of them.
  bool names_shards = false;
  // The shard whose messages are started first; those behind it follow, then the ones before it.
  // With as many workers as shards, each of which begins elsewhere, no shard is called by all at
  // once.
  size_t first_shard = 0;
  absl::Duration call_timeout = absl::Seconds(60);
  // Which shards hold rows of tables: each of them has a message in its plan, which may be without
  // blocks, and a step is complete only when RowsReady was called. Empty: none.
  std::vector<bool> shards_with_rows;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_OPTIONS_H_
