// Runs a BulkExchange on the caller's thread, or on a thread of its own.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/client/exchange/bulk_exchange.h"

namespace keelson {

// Used by one thread, except SetServers; see BulkExchange for the order of calls and for slots.
// Without a thread of its own, Ready sends what can be sent at once, and Finish and NextValues
// drive the exchange. With it, the calls only pass commands to that thread.
class ExchangeDriver {
 public:
  ExchangeDriver(ExchangeOptions options, bool background, ShardPlans plans, ExchangeMemory* memory,
                 std::unique_ptr<BulkTransport> transport, const Clock* clock,
                 const StopSignal* stop);
  // Cancels the calls under way.
  ~ExchangeDriver();

  void BeginStep(size_t slot, int64_t step, std::optional<Aggregation> aggregation);
  // BulkExchange::Omit.
  void Omit(size_t slot, size_t variable);
  void Ready(size_t slot, absl::Span<const MessageId> messages);
  // The step's rows are complete.
  void RowsReady(size_t slot, std::shared_ptr<RowTransfer> rows);
  // BulkExchange::BeginPull. `ahead`: it is sent now, not when it is waited for.
  void BeginPull(int64_t values_for, bool ahead, std::shared_ptr<RowTransfer> rows = nullptr);
  // BulkExchange::AwaitPull.
  void AwaitPull(int64_t values_for, ParameterClient::StillWanted wanted);
  // BulkExchange::SetServers, which the thread that drives the exchange calls soon. Thread-safe.
  void SetServers(std::vector<BulkServer> servers);
  size_t pull_slot() const { return exchange_.pull_slot(); }
  const ShardPlans& plans() const { return plans_; }

  // Waits until the slot is done and publishes it. Errors are those that end the exchange.
  absl::StatusOr<PushResult> Finish(size_t slot);
  // Waits for BulkExchange::TakeLanded; returns nothing when the slot's step has landed and all was
  // taken. Errors are those that end the exchange.
  absl::StatusOr<std::optional<size_t>> NextValues(size_t slot);

 private:
  // Runs `command` on the exchange's thread, after those before it.
  void Execute(std::function<void()> command);
  // BulkExchange::Drive with the newest servers.
  bool Drive(absl::Duration timeout);
  // Sends what can be sent without waiting, `calls` calls at most.
  void SendSome(size_t calls);
  // Waits until `done`, which the exchange's thread calls, returns true, or the exchange ends.
  absl::Status Await(absl::FunctionRef<bool()> done);
  void Run();
  bool TakeCommands(std::vector<std::function<void()>>* commands);
  // Ends a wait that is over.
  void EndWait();

  const ShardPlans plans_;
  std::unique_ptr<BulkTransport> transport_;
  BulkExchange exchange_;  // the thread's, when there is one

  Mutex mu_;
  CondVar finished_;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> commands_ ABSL_GUARDED_BY(mu_);
  std::optional<std::vector<BulkServer>> new_servers_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mu_);  // of the wait that has ended
  std::optional<absl::FunctionRef<bool()>> awaited_;          // the thread's
  Thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_
