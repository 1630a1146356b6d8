// The models whose variables are moved.
#ifndef KEELSON_BENCH_MODELS_H_
#define KEELSON_BENCH_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/placement.h"
#include "core/tensor/variable.h"

namespace keelson::bench {

// "180KB": LeNet-5 (LeCun et al., 1998). "2.7MB": a perceptron, 784-512-512-10. "100MB" and "1GB":
// dense layers of 2048 x 2048. Sizes in units of 1000.
std::vector<VariableSpec> ModelVariables(const std::string& model);
int64_t ModelBytes(const std::string& model);

// One array for messages of `message_bytes`, of 64 MiB for each shard, or less for small messages:
// 4096 messages.
std::vector<VariableSpec> FlatVariables(int64_t message_bytes, int shards);

// The placement of a model, or of "flat" for messages of `message_bytes`: its blocks are then as
// large as a message, up to 1 MiB.
Placement PlaceModel(const std::string& model, int64_t message_bytes, int shards);

// The largest size of one shard of the model: sockets and memcpy use as much memory in comparison.
int64_t WalkedBytes(const std::string& model, int64_t message_bytes);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_MODELS_H_
