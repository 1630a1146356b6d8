// Where the model's variables are.
#ifndef KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_
#define KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_

#include <string>
#include <vector>

#include "core/cluster/placement.h"

namespace keelson {

// The place of every variable: its shard and the shards' addresses.
struct ModelLocation {
  Placement placement;
  std::vector<std::string> ps_addresses;  // by shard
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MODEL_LOCATION_H_
