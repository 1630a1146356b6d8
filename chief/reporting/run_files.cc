#include "chief/reporting/run_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/file.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

int64_t BytesOf(const Placement& placement, size_t p) {
  return placement.PartitionElements(p) * static_cast<int64_t>(sizeof(float));
}

Json VariableJson(const VariableSpec& variable) {
  Json shape = Json::array();
  for (size_t axis = 0; axis < variable.shape.rank(); ++axis)
    shape.push_back(variable.shape.dim(axis));
  return {{"name", variable.name},
          {"shape", shape},
          {"bytes", variable.bytes()},
          {"partitions", Json::array()}};
}

// The most bytes of a shard over the mean, among the shards of servers or among those of tasks that
// train; 1 where they have none. Each kind is placed by itself.
double BalanceOf(const Placement& placement, const std::vector<ServerView>& servers, bool hosted) {
  int64_t total = 0;
  int64_t largest = 0;
  int64_t shards = 0;
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    if (servers[s].host.has_value() != hosted) continue;
    ++shards;
    total += placement.ShardBytes(s);
    largest = std::max(largest, placement.ShardBytes(s));
  }
  if (total == 0) return 1;
  return static_cast<double>(largest) * static_cast<double>(shards) / static_cast<double>(total);
}

}  // namespace

std::string PlacementJson(const Placement& placement, const std::vector<ServerView>& servers) {
  Json shards = Json::array();
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    Json shard = {{"task", servers[s].task.ToString()}, {"bytes", placement.ShardBytes(s)}};
    if (servers[s].host.has_value()) shard["host"] = servers[s].host->ToString();
    if (!placement.tables().empty()) {
      shard["row_partitions"] = placement.RowPartitionsOf(s).count;
    }
    shards.push_back(std::move(shard));
  }
  Json variables = Json::array();
  for (const VariableSpec& variable : placement.variables()) {
    variables.push_back(VariableJson(variable));
  }
  for (size_t p = 0; p < placement.partitions().size(); ++p) {
    const Partition& partition = placement.partition(p);
    variables[partition.variable]["partitions"].push_back({{"shard", partition.shard},
                                                           {"row_begin", partition.row_begin},
                                                           {"row_end", partition.row_end},
                                                           {"bytes", BytesOf(placement, p)}});
  }
  const double balance = std::max(BalanceOf(placement, servers, /*hosted=*/false),
                                  BalanceOf(placement, servers, /*hosted=*/true));
  const Json json = {{"balance", balance}, {"shards", shards}, {"variables", variables}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status WriteRunFiles(const v1::TrainConfig& config, const Placement& placement,
                           const std::vector<ServerView>& servers, FileSystem* file_system) {
  const std::string& model_dir = config.checkpoint().model_dir();
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  absl::Status status = WriteFileAtomically(JoinPath(model_dir, "placement.json"),
                                            PlacementJson(placement, servers) + "\n", file_system);
  status.Update(
      WriteFileAtomically(JoinPath(model_dir, "train_config.textproto"), text, file_system));
  return status;
}

}  // namespace keelson
