#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/client/plan/wire_plan.h"

namespace keelson {
namespace {

using Options = ShardedParameterClient::Options;

// `sizes` are by variable, in `unit`.
template <typename T>
absl::Status CheckArrays(absl::string_view what, absl::string_view unit,
                         absl::Span<const VariableSpec> variables, absl::Span<const size_t> sizes,
                         absl::Span<const absl::Span<T>> arrays) {
  if (arrays.size() != variables.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory: expected ", what, " of ", variables.size(), " variables, found ", arrays.size()));
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    if (arrays[v].size() == sizes[v]) continue;
    return absl::InvalidArgumentError(absl::StrCat("memory: ", what, " of ", variables[v].name,
                                                   ": expected ", sizes[v], " ", unit, ", found ",
                                                   arrays[v].size()));
  }
  return absl::OkStatus();
}

absl::Status CheckElements(absl::Span<const VariableSpec> variables,
                           const ParameterMemory& memory) {
  std::vector<size_t> sizes;
  for (const VariableSpec& variable : variables) {
    sizes.push_back(variable.shape.num_elements());
  }
  RETURN_IF_ERROR(CheckArrays<float>("values", "elements", variables, sizes, memory.values));
  return CheckArrays<float>("gradients", "elements", variables, sizes, memory.gradients);
}

absl::Status CheckWire(absl::Span<const VariableSpec> variables,
                       absl::Span<const VariableWire> wire, size_t depth,
                       const WireMemory& memory) {
  if (memory.values.size() != depth || memory.gradients.size() != depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory: expected ", depth, " sets of values and of gradients, found ",
                     memory.values.size(), " and ", memory.gradients.size()));
  }
  std::vector<size_t> values, gradients;
  for (const VariableWire& variable : wire) {
    values.push_back(EncodedBytes(variable.values, variable.gradient.num_elements));
    gradients.push_back(variable.gradient.bytes);
  }
  for (size_t set = 0; set < depth; ++set) {
    RETURN_IF_ERROR(CheckArrays<uint8_t>("values", "bytes", variables, values, memory.values[set]));
    RETURN_IF_ERROR(
        CheckArrays<uint8_t>("gradients", "bytes", variables, gradients, memory.gradients[set]));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const Options& options, bool has_tables,
                          absl::Span<const VariableSpec> variables,
                          absl::Span<const VariableWire> wire) {
  if (options.depth != 1 && options.depth != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("depth: expected 1 or 2, found ", options.depth));
  }
  if (options.depth == 2 && !options.background) {
    return absl::InvalidArgumentError("depth 2 needs a background thread");
  }
  if (options.depth == 2 && has_tables) {
    return absl::InvalidArgumentError("depth: expected 1 with embedding tables, found 2");
  }
  if (!options.memory.has_value()) return absl::OkStatus();
  if (options.memory->wire.has_value()) {
    return CheckWire(variables, wire, options.depth, *options.memory->wire);
  }
  if (options.depth == 2)
    return absl::InvalidArgumentError("depth 2 needs the client's own memory or wire memory");
  return CheckElements(variables, *options.memory);
}

ShardPlans PlanAll(const Placement& placement, absl::Span<const size_t> positions,
                   std::vector<VariableFormats> formats) {
  formats.resize(positions.size());
  ShardPlans plans;
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    plans.push_back(PlanTransfers(placement, s, positions, formats));
    // Rows have a message to ride on.
    const bool rows = placement.RowPartitionsOf(s).count > 0;
    if (rows && plans.back().empty()) plans.back().emplace_back();
  }
  return plans;
}

absl::StatusOr<TablePlan> LayOutRows(const Placement& placement, const Options& options) {
  TablePlan layout;
  ASSIGN_OR_RETURN(layout.tables, PlanTables(placement, options.seed, options.table_formats));
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    layout.held.push_back(placement.RowPartitionsOf(s));
  }
  return layout;
}

ExchangeOptions ToExchangeOptions(const Options& options, uint64_t placement_fingerprint,
                                  const TablePlan& rows) {
  ExchangeOptions exchange;
  exchange.self = options.self;
  exchange.membership = options.membership;
  exchange.member_epoch = options.member_epoch;
  exchange.placement_fingerprint = placement_fingerprint;
  exchange.retry = options.retry;
  exchange.max_in_flight = std::max(1, options.max_in_flight);
  exchange.servers = options.servers;
  exchange.names_shards = options.names_shards;
  exchange.first_shard = options.first_shard;
  exchange.call_timeout = options.call_timeout;
  for (const RowPartitionRun held : rows.held) exchange.shards_with_rows.push_back(held.count > 0);
  return exchange;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardedParameterClient>> ShardedParameterClient::Create(
    Options options, absl::Span<const VariableSpec> variables, const Placement& placement,
    std::unique_ptr<BulkTransport> transport, const Clock* clock, const StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::vector<size_t> positions, MatchVariables(variables, placement));
  ASSIGN_OR_RETURN(const std::vector<VariableWire> wire,
                   WireOf(placement, variables, options.formats));
  if (transport->num_shards() != placement.num_shards()) {
    return absl::InvalidArgumentError(absl::StrCat("placement: expected ", transport->num_shards(),
                                                   " shards, found ", placement.num_shards()));
  }
  RETURN_IF_ERROR(CheckOptions(options, !placement.tables().empty(), variables, wire));
  ASSIGN_OR_RETURN(TablePlan rows, LayOutRows(placement, options));
  ExchangeOptions exchange = ToExchangeOptions(options, placement.Fingerprint(), rows);
  ExchangeMemory memory = options.memory.has_value()
                              ? ExchangeMemory(*std::move(options.memory), options.depth)
                              : ExchangeMemory(variables, options.depth);
  return std::unique_ptr<ShardedParameterClient>(new ShardedParameterClient(
      std::move(memory), PlanAll(placement, positions, options.formats), std::move(rows),
      std::move(exchange), options.background, std::move(transport), clock, stop));
}

ShardedParameterClient::ShardedParameterClient(ExchangeMemory memory, ShardPlans plans,
                                               TablePlan rows, ExchangeOptions options,
                                               bool background,
                                               std::unique_ptr<BulkTransport> transport,
                                               const Clock* clock, const StopSignal* stop)
    : memory_(std::move(memory)),
      offers_(plans, memory_.num_variables()),
      rows_(rows.tables.empty() ? nullptr
                                : std::make_unique<ShardedTableRows>(std::move(rows), &driver_)),
      driver_(std::move(options), background, std::move(plans), &memory_, std::move(transport),
              clock, stop) {}

absl::Status ShardedParameterClient::PullFor(int64_t step, StillWanted wanted) {
  if (under_way_.has_value()) {
    ASSIGN_OR_RETURN(finished_, driver_.Finish(*std::exchange(under_way_, std::nullopt)));
  }
  const std::optional<int64_t> ahead = std::exchange(ahead_, std::nullopt);
  if (!ahead.has_value()) {
    driver_.BeginPull(step, /*ahead=*/false, rows_ == nullptr ? nullptr : rows_->BeginPull());
  }
  // What was asked for ahead may not come before this step is done: it is begun again, or the job
  // has gone back to a snapshot.
  driver_.AwaitPull(std::min(step, ahead.value_or(step)), wanted);
  RETURN_IF_ERROR(driver_.Finish(driver_.pull_slot()).status());
  if (rows_ != nullptr) rows_->Landed();
  // What came for another step may have changed since.
  return ahead.value_or(step) == step ? absl::OkStatus() : PullFor(step, std::move(wanted));
}

void ShardedParameterClient::PullAhead(int64_t step) {
  driver_.BeginPull(step, /*ahead=*/true);
  ahead_ = step;
}

void ShardedParameterClient::Begin(int64_t step, std::optional<Aggregation> aggregation) {
  offers_.Reset();
  aggregated_ = aggregation.has_value();
  if (rows_ != nullptr) rows_->BeginStep(slot_, aggregated_);
  driver_.BeginStep(slot_, step, aggregation);
}

void ShardedParameterClient::Offer(size_t variable) {
  driver_.Ready(slot_, offers_.Offer(variable));
}

void ShardedParameterClient::Omit(size_t variable) {
  if (offers_.offered(variable)) return;
  driver_.Omit(slot_, variable);
  Offer(variable);
}

// Without the rows the step would never land.
absl::Status ShardedParameterClient::OfferRest() {
  if (rows_ != nullptr) RETURN_IF_ERROR(rows_->CheckOffered());
  driver_.Ready(slot_, offers_.OfferRest());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<size_t>> ShardedParameterClient::NextValues() {
  RETURN_IF_ERROR(OfferRest());
  if (depth() > 1 || aggregated_) return std::nullopt;
  return driver_.NextValues(slot_);
}

absl::StatusOr<std::optional<PushResult>> ShardedParameterClient::End() {
  RETURN_IF_ERROR(OfferRest());
  if (depth() == 1 || aggregated_) {
    ASSIGN_OR_RETURN(const PushResult result, driver_.Finish(slot_));
    if (rows_ != nullptr) rows_->Landed();
    return result;
  }
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

void ShardedParameterClient::SetServers(std::vector<BulkServer> servers) {
  const size_t shards = driver_.plans().size();
  if (servers.size() != shards) {
    LogError("servers: expected one for each of ", shards, " shards, found ", servers.size());
    return;
  }
  driver_.SetServers(std::move(servers));
}

}  // namespace keelson
