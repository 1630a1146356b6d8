#include "core/client/exchange/exchange_driver.h"

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
  // The transport's requests lie in the exchange's memory.
  exchange_.Abandon();
  transport_.reset();
}

void ExchangeDriver::BeginStep(int slot, int64_t step, std::optional<Aggregation> aggregation) {
  const Command command{Command::Kind::kBeginStep, slot, {}, step, aggregation};
  if (!thread_.joinable()) return Execute(command);
  // The thread has nothing to do for this command yet.
  MutexLock lock(&mu_);
  commands_.push_back(command);
}

void ExchangeDriver::Ready(int slot, absl::Span<const MessageId> messages) {
  if (messages.empty()) return;
  if (!thread_.joinable()) {
    for (const MessageId& id : messages) exchange_.MessageReady(slot, id);
    // The number of rounds is limited: retries at a server that refuses would keep this loop busy.
    for (size_t i = 0; i <= messages.size() && exchange_.Drive(absl::ZeroDuration()); ++i) {
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
  const Outcome outcome = Await({Command::Kind::kFinish, slot});
  if (!outcome.status.ok()) return outcome.status;
  return outcome.result;
}

absl::StatusOr<std::optional<int>> ExchangeDriver::NextValues(int slot) {
  const Outcome outcome = Await({Command::Kind::kNextValues, slot});
  if (!outcome.status.ok()) return outcome.status;
  return outcome.variable;
}

std::optional<ExchangeDriver::Outcome> ExchangeDriver::Try(const Command& awaited) {
  if (!exchange_.status().ok()) return Outcome{exchange_.status()};
  if (awaited.kind == Command::Kind::kFinish) {
    if (!exchange_.Done(awaited.slot)) return std::nullopt;
    return Outcome{absl::OkStatus(), exchange_.Publish(awaited.slot)};
  }
  const std::optional<int> variable = exchange_.TakeLanded();
  if (!variable.has_value() && !exchange_.Landed(awaited.slot)) return std::nullopt;
  return Outcome{absl::OkStatus(), {}, variable};
}

ExchangeDriver::Outcome ExchangeDriver::Await(const Command& awaited) {
  if (thread_.joinable()) return AwaitInBackground(awaited);
  while (true) {
    std::optional<Outcome> outcome = Try(awaited);
    if (outcome.has_value()) return *std::move(outcome);
    exchange_.Drive(absl::InfiniteDuration());
  }
}

ExchangeDriver::Outcome ExchangeDriver::AwaitInBackground(const Command& awaited) {
  {
    MutexLock lock(&mu_);
    commands_.push_back(awaited);
  }
  transport_->Wake();
  MutexLock lock(&mu_);
  while (!outcome_.has_value()) finished_.Wait(&mu_);
  return *std::exchange(outcome_, std::nullopt);
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
    case Command::Kind::kNextValues:
      awaited_ = command;
      return;
  }
}

void ExchangeDriver::Run() {
  std::vector<Command> commands;
  while (TakeCommands(&commands)) {
    for (const Command& command : commands) Execute(command);
    commands.clear();
    if (awaited_.has_value()) {
      std::optional<Outcome> outcome = Try(*awaited_);
      if (outcome.has_value()) {
        awaited_.reset();
        MutexLock lock(&mu_);
        outcome_ = std::move(outcome);
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
