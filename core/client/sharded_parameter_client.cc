#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using Options = ShardedParameterClient::Options;

absl::Status Invalid(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Position in `ours` of each of the placement's variables.
absl::StatusOr<std::vector<int>> MatchVariables(absl::Span<const VariableSpec> ours,
                                                absl::Span<const VariableSpec> placed) {
  std::vector<int> positions;
  for (const VariableSpec& variable : placed) {
    const auto found = std::find_if(ours.begin(), ours.end(), [&](const VariableSpec& candidate) {
      return candidate.name == variable.name && candidate.shape == variable.shape;
    });
    if (found == ours.end()) {
      return Invalid(absl::StrCat("placement: the model has no variable ", variable.name,
                                  variable.shape.ToString()));
    }
    positions.push_back(static_cast<int>(found - ours.begin()));
  }
  if (placed.size() != ours.size()) {
    return Invalid(
        absl::StrCat("placement: expected ", ours.size(), " variables, found ", placed.size()));
  }
  return positions;
}

absl::Status CheckArrays(absl::string_view what, absl::Span<const VariableSpec> variables,
                         absl::Span<const absl::Span<float>> arrays) {
  if (arrays.size() != variables.size()) {
    return Invalid(absl::StrCat("memory: expected ", what, " of ", variables.size(),
                                " variables, found ", arrays.size()));
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    const auto expected = static_cast<size_t>(variables[v].shape.num_elements());
    if (arrays[v].size() == expected) continue;
    return Invalid(absl::StrCat("memory: ", what, " of ", variables[v].name, ": expected ",
                                expected, " elements, found ", arrays[v].size()));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const Options& options, absl::Span<const VariableSpec> variables) {
  if (options.depth != 1 && options.depth != 2) {
    return Invalid(absl::StrCat("depth: expected 1 or 2, found ", options.depth));
  }
  if (options.depth == 2 && !options.background) {
    return Invalid("depth 2 needs a background thread");
  }
  if (!options.formats.empty() && options.formats.size() != variables.size()) {
    return Invalid(
        absl::StrCat("formats: expected ", variables.size(), ", found ", options.formats.size()));
  }
  if (!options.memory.has_value()) return absl::OkStatus();
  if (options.depth == 2) return Invalid("depth 2 needs the client's own memory");
  RETURN_IF_ERROR(CheckArrays("values", variables, options.memory->values));
  return CheckArrays("gradients", variables, options.memory->gradients);
}

ShardPlans PlanAll(const Placement& placement, absl::Span<const int> positions,
                   std::vector<VariableFormats> formats) {
  formats.resize(positions.size());
  ShardPlans plans;
  for (int s = 0; s < placement.num_shards(); ++s) {
    plans.push_back(PlanTransfers(placement, s, positions, formats));
  }
  return plans;
}

ExchangeOptions ToExchangeOptions(const Options& options, uint64_t placement_fingerprint) {
  ExchangeOptions exchange;
  exchange.self = options.self;
  exchange.incarnation = options.incarnation;
  exchange.placement_fingerprint = placement_fingerprint;
  exchange.retry = options.retry;
  exchange.max_in_flight = std::max(1, options.max_in_flight);
  exchange.call_timeout = options.call_timeout;
  return exchange;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardedParameterClient>> ShardedParameterClient::Create(
    Options options, absl::Span<const VariableSpec> variables, const Placement& placement,
    std::unique_ptr<BulkTransport> transport, const Clock* clock, const StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::vector<int> positions,
                   MatchVariables(variables, placement.variables()));
  if (transport->num_shards() != placement.num_shards()) {
    return Invalid(absl::StrCat("placement: expected ", transport->num_shards(), " shards, found ",
                                placement.num_shards()));
  }
  RETURN_IF_ERROR(CheckOptions(options, variables));
  ExchangeMemory memory = options.memory.has_value() ? ExchangeMemory(*std::move(options.memory))
                                                     : ExchangeMemory(variables, options.depth);
  return std::unique_ptr<ShardedParameterClient>(
      new ShardedParameterClient(std::move(memory), PlanAll(placement, positions, options.formats),
                                 ToExchangeOptions(options, placement.Fingerprint()),
                                 options.background, std::move(transport), clock, stop));
}

ShardedParameterClient::ShardedParameterClient(ExchangeMemory memory, ShardPlans plans,
                                               ExchangeOptions options, bool background,
                                               std::unique_ptr<BulkTransport> transport,
                                               const Clock* clock, const StopSignal* stop)
    : memory_(std::move(memory)),
      offers_(plans, static_cast<int>(memory_.values().size())),
      driver_(std::move(options), background, std::move(plans), &memory_, std::move(transport),
              clock, stop) {}

absl::Status ShardedParameterClient::Pull() {
  if (under_way_.has_value()) {
    ASSIGN_OR_RETURN(finished_, driver_.Finish(*std::exchange(under_way_, std::nullopt)));
  }
  driver_.BeginPull();
  return driver_.Finish(driver_.pull_slot()).status();
}

void ShardedParameterClient::Begin(int64_t step, std::optional<Aggregation> aggregation) {
  offers_.Reset();
  aggregated_ = aggregation.has_value();
  driver_.BeginStep(slot_, step, aggregation);
}

void ShardedParameterClient::Offer(int variable) { driver_.Ready(slot_, offers_.Offer(variable)); }

absl::StatusOr<std::optional<PushResult>> ShardedParameterClient::End() {
  driver_.Ready(slot_, offers_.OfferRest());
  if (depth() == 1 || aggregated_) return driver_.Finish(slot_);
  absl::StatusOr<std::optional<PushResult>> before = FinishUnderWay();
  under_way_ = slot_;
  slot_ = 1 - slot_;
  return before;
}

absl::StatusOr<std::optional<PushResult>> ShardedParameterClient::Drain() {
  return FinishUnderWay();
}

absl::StatusOr<std::optional<PushResult>> ShardedParameterClient::FinishUnderWay() {
  if (!under_way_.has_value()) return std::exchange(finished_, std::nullopt);
  return driver_.Finish(*std::exchange(under_way_, std::nullopt));
}

}  // namespace keelson
