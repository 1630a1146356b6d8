#include "bench/rows/row_client.h"

#include "bench/rows/keelson_row_client.h"
#include "bench/rows/redis_row_client.h"

namespace keelson::bench {

absl::StatusOr<std::unique_ptr<RowClient>> MakeRowClient(const RowTarget& target) {
  if (target.system == RowSystem::kRedis) return RedisRowClient::Create(target);
  return KeelsonRowClient::Create(target);
}

}  // namespace keelson::bench
