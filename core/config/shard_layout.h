// Which tasks of a job hold its shards, as the configuration's placement and the cluster decide.
#ifndef KEELSON_CORE_CONFIG_SHARD_LAYOUT_H_
#define KEELSON_CORE_CONFIG_SHARD_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/task.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

using PlacementGroup = v1::PlacementConfig::Group;

// Immutable value. Every task of a job comes to the same one.
class ShardLayout {
 public:
  // The config fits the cluster (CheckFitsCluster).
  ShardLayout(const v1::TrainConfig& config, const ClusterSpec& cluster);

  // How many shards are parameter servers'; shard s of these is that of ps-s.
  size_t servers() const { return servers_; }
  // The tasks that train and hold the further shards, shard servers()'s first. Without parameter
  // servers they are ClusterSpec::ShardHosts(). With them they are the workers that the cluster
  // lists, by index, if the config places anything on workers, and none if it does not: whether the
  // chief trains there only its own process knows.
  const std::vector<Task>& hosts() const { return hosts_; }
  size_t num_shards() const { return servers_ + hosts_.size(); }

  // The shard that is at home at this one of hosts(); nothing: it is none of them.
  std::optional<size_t> HomeAt(const Task& task) const;
  // The next shard in the ring of those of hosts(), of which `shard` is one. Its host is the first
  // one to get the replica of `shard`, if there are replicas (WantsReplicas).
  size_t ShardAfter(size_t shard) const;
  // This shard of the ring, then the others in order.
  std::vector<size_t> RingFrom(size_t shard) const;

 private:
  size_t servers_ = 0;
  std::vector<Task> hosts_;
};

// The place that the config says of a variable or table, by the first group that matches its name;
// PLACE_UNSPECIFIED: no group matches.
PlacementGroup::Place GroupPlaceOf(const v1::PlacementConfig& config, absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_SHARD_LAYOUT_H_
