#include "chief/coordination/shard_addresses.h"

#include <utility>

namespace keelson {

void ShardAddresses::Set(std::vector<std::string> addresses) {
  MutexLock lock(&state_->mu);
  ModelLocation& model = *state_->model;
  if (addresses == model.ps_addresses) return;
  model.ps_addresses = std::move(addresses);
  ++model.servers_version;
}

VersionedAddresses ShardAddresses::NewsFor(uint64_t version) const {
  MutexLock lock(&state_->mu);
  if (!state_->model.has_value()) return {};
  VersionedAddresses news = {state_->model->servers_version, {}};
  if (version != news.version) news.addresses = state_->model->ps_addresses;
  return news;
}

}  // namespace keelson
