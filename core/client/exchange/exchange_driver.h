// Runs a BulkExchange on the caller's thread, or on a thread of its own.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/client/exchange/bulk_exchange.h"

namespace keelson {

// Used by one thread; see BulkExchange for the order of calls and for slots. Without a thread of
// its own, Ready sends what can be sent at once, and Finish and NextValues drive the exchange. With
// it, the calls only pass commands to that thread.
class ExchangeDriver {
 public:
  ExchangeDriver(ExchangeOptions options, bool background, ShardPlans plans, ExchangeMemory* memory,
                 std::unique_ptr<BulkTransport> transport, const Clock* clock,
                 const StopSignal* stop);
  // Cancels the calls under way.
  ~ExchangeDriver();

  void BeginStep(int slot, int64_t step, std::optional<Aggregation> aggregation);
  void Ready(int slot, absl::Span<const MessageId> messages);
  void BeginPull();
  int pull_slot() const { return exchange_.pull_slot(); }

  // Waits until the slot is done and publishes it. Errors are those that end the exchange.
  absl::StatusOr<PushResult> Finish(int slot);
  // Waits for BulkExchange::TakeLanded; returns nothing when the slot's step has landed and all was
  // taken. Errors are those that end the exchange.
  absl::StatusOr<std::optional<int>> NextValues(int slot);

 private:
  struct Command {
    enum class Kind { kBeginStep, kReady, kBeginPull, kFinish, kNextValues };
    Kind kind;
    int slot = 0;
    MessageId message = {};
    int64_t step = 0;
    std::optional<Aggregation> aggregation = {};
  };

  // The result of Finish or NextValues.
  struct Outcome {
    absl::Status status;
    PushResult result = {};
    std::optional<int> variable = {};
  };

  void Execute(const Command& command);
  // The outcome of `awaited`, or nothing while there is none.
  std::optional<Outcome> Try(const Command& awaited);
  Outcome Await(const Command& awaited);
  Outcome AwaitInBackground(const Command& awaited);
  void Run();
  bool TakeCommands(std::vector<Command>* commands);

  const ShardPlans plans_;
  std::unique_ptr<BulkTransport> transport_;
  BulkExchange exchange_;  // the thread's, when there is one

  Mutex mu_;
  CondVar finished_;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Command> commands_ ABSL_GUARDED_BY(mu_);
  std::optional<Outcome> outcome_ ABSL_GUARDED_BY(mu_);
  std::optional<Command> awaited_;  // the thread's: a kFinish or kNextValues
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_EXCHANGE_DRIVER_H_
