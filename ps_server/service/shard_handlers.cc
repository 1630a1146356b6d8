#include "ps_server/service/shard_handlers.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace keelson {
namespace {

using Handlers = ShardHandlers::Handlers;

Handlers MakeHandlers(const std::vector<size_t>& shards, ParameterHandler::Options options,
                      ChiefAdmission* chiefs, const Clock* clock, StopSignal* end) {
  Handlers handlers;
  options.chiefs = chiefs;
  for (const size_t shard : shards) {
    handlers.emplace_back(shard, std::make_unique<ParameterHandler>(options, clock, end));
  }
  return handlers;
}

std::vector<HostedShard> Hosted(const Handlers& handlers) {
  std::vector<HostedShard> hosted;
  for (const auto& [shard, handler] : handlers) {
    hosted.push_back({static_cast<uint32_t>(shard), handler.get(), handler.get()});
  }
  return hosted;
}

}  // namespace

ShardHandlers::ShardHandlers(const std::vector<size_t>& shards,
                             const ParameterHandler::Options& options, const Clock* clock,
                             StopSignal* end)
    : clock_(clock),
      end_(end),
      chiefs_(clock, options.chief_exclusive),
      handlers_(MakeHandlers(shards, options, &chiefs_, clock, end)),
      calls_(Hosted(handlers_)) {}

ParameterHandler* ShardHandlers::at(size_t shard) {
  for (const auto& [number, handler] : handlers_) {
    if (number == shard) return handler.get();
  }
  return nullptr;
}

bool ShardHandlers::called() const { return Sign().silence < absl::InfiniteDuration(); }

bool ShardHandlers::finished() const {
  return std::any_of(handlers_.begin(), handlers_.end(),
                     [](const auto& hosted) { return hosted.second->finished(); });
}

ChiefSign ShardHandlers::Sign() const {
  ChiefSign all;
  for (const auto& [shard, handler] : handlers_) {
    const ChiefSign one = handler->chief_sign();
    all.silence = std::min(all.silence, one.silence);
    all.stopping |= one.stopping;
    all.unsaved |= one.unsaved;
  }
  return all;
}

bool ShardHandlers::CloseIfSaved() {
  return std::all_of(handlers_.begin(), handlers_.end(),
                     [](const auto& hosted) { return hosted.second->CloseIfSaved(); });
}

void ShardHandlers::Linger(const DepartureLimits& limits) {
  for (const auto& [shard, handler] : handlers_) handler->Leave();
  LingerForChief([this] { return Sign(); }, [this] { return CloseIfSaved(); }, limits, clock_,
                 *end_);
}

}  // namespace keelson
