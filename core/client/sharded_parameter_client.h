// ParameterClient over the servers of a placement.
#ifndef KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/exchange/exchange_driver.h"
#include "core/client/exchange/exchange_memory.h"
#include "core/client/exchange/offer_tracker.h"
#include "core/client/services/parameter_client.h"
#include "core/client/services/retry.h"
#include "core/client/sharded_table_rows.h"
#include "core/client/transport/bulk_transport.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/cluster/task.h"
#include "core/cluster/transfer_formats.h"

namespace keelson {

// Calls all shards concurrently, from one thread. A step is one PushPull per message; a message is
// sent when the gradients of all its variables have been offered, so at depth 1 its answer may be
// written to values() of those variables before End is called. A shard that was initialised again
// (its store id differs) is pulled completely before End returns.
//
// An error ends the client: all later calls return it, and the transport may hold `memory` until
// the client is destroyed.
class ShardedParameterClient : public ParameterClient {
 public:
  struct Options {
    Task self;
    MembershipId membership;
    uint64_t member_epoch = 0;  // v1::RequestHeader
    RetryOptions retry;
    // Per variable, in the caller's order; empty: float32.
    std::vector<VariableFormats> formats;
    // Per table, in the placement's order; empty: float32.
    std::vector<VariableFormats> table_formats;
    // The job's, from which initial values follow; needed with tables only.
    uint64_t seed = 0;
    size_t depth = 1;
    // True: input and output have a thread of their own and continue while the caller computes;
    // depth 2 needs it. False: they are done within the client's calls (Offer does not wait).
    bool background = false;
    // The most messages in flight at each server, which may grant fewer.
    int max_in_flight = 4;
    // ExchangeOptions
    std::vector<BulkServer> servers;
    bool names_shards = false;
    size_t first_shard = 0;
    // The deadline of one attempt.
    absl::Duration call_timeout = absl::Seconds(60);
    // The caller's memory instead of the client's own; outlives the client.
    std::optional<ParameterMemory> memory;
  };

  // `variables` are the model's, in the caller's order; `transport` has as many shards as the
  // placement. Clock and stop signal outlive the client. INVALID_ARGUMENT: the placement is of
  // other variables, or of another number of shards; a depth other than 1 or 2; depth 2 without
  // background, with tables or with memory of elements; memory or formats that do not fit the
  // variables, the tables and the placement.
  static absl::StatusOr<std::unique_ptr<ShardedParameterClient>> Create(
      Options options, absl::Span<const VariableSpec> variables, const Placement& placement,
      std::unique_ptr<BulkTransport> transport, const Clock* clock, const StopSignal* stop);

  absl::Span<const absl::Span<float>> values() const override { return memory_.values().elements; }
  absl::Span<const absl::Span<float>> gradients() const override {
    return memory_.gradients(slot_).elements;
  }
  size_t value_set() const override { return memory_.value_set(); }
  size_t gradient_set() const override { return slot_; }
  TableRows* table_rows() override { return rows_.get(); }
  size_t depth() const override { return memory_.depth(); }
  absl::Status PullFor(int64_t step, StillWanted wanted) override;
  void PullAhead(int64_t step) override;
  void Begin(int64_t step, std::optional<Aggregation> aggregation = std::nullopt) override;
  void Offer(size_t variable) override;
  void Omit(size_t variable) override;
  absl::StatusOr<std::optional<size_t>> NextValues() override;
  absl::StatusOr<std::optional<PushResult>> End() override;
  absl::StatusOr<std::optional<PushResult>> Drain() override;
  void SetServers(std::vector<BulkServer> servers) override;

 private:
  ShardedParameterClient(ExchangeMemory memory, ShardPlans plans, TablePlan rows,
                         ExchangeOptions options, bool background,
                         std::unique_ptr<BulkTransport> transport, const Clock* clock,
                         const StopSignal* stop);

  absl::Status OfferRest();
  absl::StatusOr<std::optional<PushResult>> FinishUnderWay();

  ExchangeMemory memory_;
  OfferTracker offers_;
  // Lends its layout to what the driver executes.
  std::unique_ptr<ShardedTableRows> rows_;
  ExchangeDriver driver_;
  // The slot of the current or next step.
  size_t slot_ = 0;
  bool aggregated_ = false;  // the step that Begin began
  // The slot of a step that was sent and is not acknowledged.
  std::optional<size_t> under_way_;
  // The result of that step, if Pull had to wait for it.
  std::optional<PushResult> finished_;
  // The step of PullAhead, until PullFor.
  std::optional<int64_t> ahead_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_
