// All that one process serves of a model: each shard that may be here, and how the process leaves.
#ifndef KEELSON_PS_SERVER_SERVICE_SHARD_HANDLERS_H_
#define KEELSON_PS_SERVER_SERVICE_SHARD_HANDLERS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/hosted_shards.h"
#include "ps_server/service/parameter_handler.h"

namespace keelson {

// Thread-safe.
class ShardHandlers {
 public:
  using Handlers = std::vector<std::pair<size_t, std::unique_ptr<ParameterHandler>>>;

  // At least one shard; the first is the one that the process hosts by itself. Options::chiefs is
  // left out: one chief is obeyed for all of them. `end` is raised by Finish, or by others who end
  // the process's service. Both outlive the handlers.
  ShardHandlers(const std::vector<size_t>& shards, const ParameterHandler::Options& options,
                const Clock* clock, StopSignal* end);

  // What serves this shard, or holds its replica, if it is here; null: it never is.
  ParameterHandler* at(size_t shard);
  // That of the shard that the process hosts by itself.
  ParameterHandler* own() { return handlers_.front().second.get(); }
  // The handlers of all shards that may be here, with the shards' numbers.
  const Handlers& all() const { return handlers_; }
  // Takes the calls of all shards that may be here.
  HostedShards* calls() { return &calls_; }

  // A chief has called. One that counts this process among the hosts of its shards has, before it
  // hands out work.
  bool called() const;
  // The chief has said that the job is over.
  bool finished() const;

  // The process was asked to stop: serves until the chief needs its shards no more, or as long as
  // `limits` allows, or until the end.
  void Linger(const DepartureLimits& limits);

 private:
  ChiefSign Sign() const;
  bool CloseIfSaved();

  const Clock* const clock_;
  StopSignal* const end_;
  ChiefAdmission chiefs_;
  const Handlers handlers_;  // by shard
  HostedShards calls_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SHARD_HANDLERS_H_
