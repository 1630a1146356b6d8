#include "core/client/exchange_driver.h"

#include <utility>

namespace keelson {

ExchangeDriver::ExchangeDriver(ExchangeOptions options, bool background, ShardPlans plans,
                               ExchangeMemory* memory, std::unique_ptr<BulkTransport> transport,
                               const Clock* clock, const StopSignal* stop)
    : plans_(std::move(plans)),
      transport_(std::move(transport)),
      exchange_(std::move(options), &plans_, memory, transport_.get(), clock, stop) {
  if (background) thread_ = std::thread([this] { Run(); });
}

ExchangeDriver::~ExchangeDriver() {
  if (thread_.joinable()) {
    {
      MutexLock lock(&mu_);
      quit_ = true;
    }
    transport_->Wake();
    thread_.join();
  }
  // Its requests lie in the exchange's memory.
  exchange_.Abandon();
  transport_.reset();
}

void ExchangeDriver::BeginStep(int slot, int64_t step, std::optional<Aggregation> aggregation) {
  const Command command{Command::Kind::kBeginStep, slot, {}, step, aggregation};
  if (!thread_.joinable()) return Execute(command);
  // The thread has nothing to do for it yet.
  MutexLock lock(&mu_);
  commands_.push_back(command);
}

void ExchangeDriver::Ready(int slot, absl::Span<const MessageId> messages) {
  if (messages.empty()) return;
  if (!thread_.joinable()) {
    for (const MessageId& id : messages) exchange_.MessageReady(slot, id);
    while (exchange_.Drive(absl::ZeroDuration())) {
    }
    return;
  }
  {
    MutexLock lock(&mu_);
    for (const MessageId& id : messages) {
      commands_.push_back({Command::Kind::kReady, slot, id});
    }
  }
  transport_->Wake();
}

void ExchangeDriver::BeginPull() {
  const Command command{Command::Kind::kBeginPull};
  if (!thread_.joinable()) return Execute(command);
  MutexLock lock(&mu_);
  commands_.push_back(command);
}

absl::StatusOr<PushResult> ExchangeDriver::Finish(int slot) {
  if (thread_.joinable()) return FinishInBackground(slot);
  while (true) {
    std::optional<absl::StatusOr<PushResult>> result = TryFinish(slot);
    if (result.has_value()) return *std::move(result);
    exchange_.Drive(absl::InfiniteDuration());
  }
}

std::optional<absl::StatusOr<PushResult>> ExchangeDriver::TryFinish(int slot) {
  if (!exchange_.status().ok()) return exchange_.status();
  if (!exchange_.Done(slot)) return std::nullopt;
  return exchange_.Publish(slot);
}

absl::StatusOr<PushResult> ExchangeDriver::FinishInBackground(int slot) {
  {
    MutexLock lock(&mu_);
    commands_.push_back({Command::Kind::kFinish, slot});
  }
  transport_->Wake();
  MutexLock lock(&mu_);
  while (!result_.has_value()) finished_.Wait(&mu_);
  return *std::exchange(result_, std::nullopt);
}

void ExchangeDriver::Execute(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kBeginStep:
      return exchange_.BeginStep(command.slot, command.step, command.aggregation);
    case Command::Kind::kReady:
      return exchange_.MessageReady(command.slot, command.message);
    case Command::Kind::kBeginPull:
      return exchange_.BeginPull();
    case Command::Kind::kFinish:
      awaited_ = command.slot;
      return;
  }
}

void ExchangeDriver::Run() {
  std::vector<Command> commands;
  while (TakeCommands(&commands)) {
    for (const Command& command : commands) Execute(command);
    commands.clear();
    if (awaited_.has_value()) {
      std::optional<absl::StatusOr<PushResult>> result = TryFinish(*awaited_);
      if (result.has_value()) {
        awaited_.reset();
        MutexLock lock(&mu_);
        result_ = std::move(result);
        finished_.NotifyAll();
      }
    }
    exchange_.Drive(absl::InfiniteDuration());
  }
}

bool ExchangeDriver::TakeCommands(std::vector<Command>* commands) {
  MutexLock lock(&mu_);
  commands->swap(commands_);
  return !quit_;
}

}  // namespace keelson
