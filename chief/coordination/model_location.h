// Where the model's variables are, and how many records train it.
#ifndef KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_
#define KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/placement.h"

namespace keelson {

// The place of every variable: its shard and the shards' addresses.
struct ModelLocation {
  Placement placement;
  std::vector<std::string> ps_addresses;  // by shard
  int64_t train_records = 0;              // 0: a stream
  uint64_t servers_version = 1;           // of the addresses
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_
