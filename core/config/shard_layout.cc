#include "core/config/shard_layout.h"

#include <algorithm>

#include "core/base/name_pattern.h"

namespace keelson {
namespace {

bool HoldsOnWorkers(const v1::PlacementConfig& config) {
  return std::any_of(
      config.groups().begin(), config.groups().end(),
      [](const PlacementGroup& group) { return group.on() == PlacementGroup::WORKERS; });
}

}  // namespace

ShardLayout::ShardLayout(const v1::TrainConfig& config, const ClusterSpec& cluster)
    : servers_(cluster.ps.size()), hosts_(cluster.ShardHosts()) {
  const bool both = cluster.distributed && !cluster.sparse && servers_ > 0;
  if (!both || !HoldsOnWorkers(config.placement())) return;
  for (const auto& [index, address] : cluster.workers) hosts_.push_back({Role::kWorker, index});
}

std::optional<size_t> ShardLayout::HomeAt(const Task& task) const {
  const auto host = std::find(hosts_.begin(), hosts_.end(), task);
  if (host == hosts_.end()) return std::nullopt;
  return servers_ + static_cast<size_t>(host - hosts_.begin());
}

size_t ShardLayout::ShardAfter(size_t shard) const {
  return servers_ + (shard - servers_ + 1) % hosts_.size();
}

std::vector<size_t> ShardLayout::RingFrom(size_t shard) const {
  std::vector<size_t> ring = {shard};
  for (size_t next = ShardAfter(shard); next != shard; next = ShardAfter(next)) {
    ring.push_back(next);
  }
  return ring;
}

PlacementGroup::Place GroupPlaceOf(const v1::PlacementConfig& config, absl::string_view name) {
  const auto group = std::find_if(
      config.groups().begin(), config.groups().end(),
      [&](const PlacementGroup& candidate) { return MatchesPattern(candidate.variables(), name); });
  return group == config.groups().end() ? PlacementGroup::PLACE_UNSPECIFIED : group->on();
}

}  // namespace keelson
