// Who runs a BulkExchange: the caller's thread, or one of its own.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_DRIVER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_DRIVER_H_

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/client/bulk_exchange.h"

namespace keelson {

// Used by one thread; see BulkExchange for the order of calls and for slots. Without a thread of
// its own, Ready sends what can be sent at once, and Finish drives the exchange. With it, both
// only hand over.
class ExchangeDriver {
 public:
  ExchangeDriver(ExchangeOptions options, bool background, ShardPlans plans, ExchangeMemory* memory,
                 std::unique_ptr<BulkTransport> transport, const Clock* clock,
                 const StopSignal* stop);
  // Cancels what is under way.
  ~ExchangeDriver();

  void BeginStep(int slot, int64_t step, std::optional<Aggregation> aggregation);
  void Ready(int slot, absl::Span<const MessageId> messages);
  void BeginPull();
  int pull_slot() const { return exchange_.pull_slot(); }

  // Waits until the slot is done and publishes it. Or the error that ended the exchange.
  absl::StatusOr<PushResult> Finish(int slot);

 private:
  struct Command {
    enum class Kind { kBeginStep, kReady, kBeginPull, kFinish };
    Kind kind;
    int slot = 0;
    MessageId message = {};
    int64_t step = 0;
    std::optional<Aggregation> aggregation = {};
  };

  void Execute(const Command& command);
  std::optional<absl::StatusOr<PushResult>> TryFinish(int slot);
  absl::StatusOr<PushResult> FinishInBackground(int slot);
  void Run();
  bool TakeCommands(std::vector<Command>* commands);

  const ShardPlans plans_;
  std::unique_ptr<BulkTransport> transport_;
  BulkExchange exchange_;  // the thread's, when there is one

  Mutex mu_;
  CondVar finished_;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Command> commands_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::StatusOr<PushResult>> result_ ABSL_GUARDED_BY(mu_);
  std::optional<int> awaited_;  // the thread's: slot of a Finish
  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_DRIVER_H_
