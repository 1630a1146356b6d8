#include "core/client/exchange/exchange_driver.h"

#include <utility>

#include "core/base/status_macros.h"

namespace keelson {

ExchangeDriver::ExchangeDriver(ExchangeOptions options, bool background, ShardPlans plans,
                               ExchangeMemory* memory, std::unique_ptr<BulkTransport> transport,
                               const Clock* clock, const StopSignal* stop)
    : plans_(std::move(plans)),
      transport_(std::move(transport)),
      exchange_(std::move(options), &plans_, memory, transport_.get(), clock, stop) {
  if (background) thread_ = Thread([this] { Run(); });
}

ExchangeDriver::~ExchangeDriver() {
  if (thread_.Joinable()) {
    {
      MutexLock lock(&mu_);
      quit_ = true;
    }
    transport_->Wake();
    thread_.Join();
  }
  // The transport's requests lie in the exchange's memory.
  exchange_.Abandon();
  transport_.reset();
}

void ExchangeDriver::BeginStep(size_t slot, int64_t step, std::optional<Aggregation> aggregation) {
  // The thread has nothing to do for this command yet, so it is not woken.
  Execute([this, slot, step, aggregation] { exchange_.BeginStep(slot, step, aggregation); });
}

void ExchangeDriver::Omit(size_t slot, size_t variable) {
  Execute([this, slot, variable] { exchange_.Omit(slot, variable); });
}

void ExchangeDriver::Ready(size_t slot, absl::Span<const MessageId> messages) {
  if (messages.empty()) return;
  Execute([this, slot, ids = std::vector<MessageId>(messages.begin(), messages.end())] {
    for (const MessageId& id : ids) exchange_.MessageReady(slot, id);
  });
  SendSome(messages.size());
}

void ExchangeDriver::RowsReady(size_t slot, std::shared_ptr<RowTransfer> rows) {
  size_t messages = 0;
  for (size_t s = 0; s < plans_.size(); ++s) messages += rows->num_messages(s);
  Execute([this, slot, rows = std::move(rows)] { exchange_.RowsReady(slot, rows); });
  SendSome(messages);
}

// The number of rounds is limited: retries at a server that refuses would keep the loop busy.
void ExchangeDriver::SendSome(size_t calls) {
  if (thread_.Joinable()) return transport_->Wake();
  for (size_t i = 0; i <= calls && Drive(absl::ZeroDuration()); ++i) {
  }
}

void ExchangeDriver::BeginPull(int64_t values_for, bool ahead, std::shared_ptr<RowTransfer> rows) {
  Execute([this, values_for, rows = std::move(rows)] { exchange_.BeginPull(values_for, rows); });
  // The first round of calls only: what does not fit follows when it is waited for.
  if (ahead) SendSome(0);
}

void ExchangeDriver::AwaitPull(int64_t values_for, ParameterClient::StillWanted wanted) {
  Execute(
      [this, values_for, wanted = std::move(wanted)] { exchange_.AwaitPull(values_for, wanted); });
}

absl::StatusOr<PushResult> ExchangeDriver::Finish(size_t slot) {
  PushResult result;
  RETURN_IF_ERROR(Await([&] {
    if (!exchange_.Done(slot)) return false;
    result = exchange_.Publish(slot);
    return true;
  }));
  return result;
}

absl::StatusOr<std::optional<size_t>> ExchangeDriver::NextValues(size_t slot) {
  std::optional<size_t> variable;
  RETURN_IF_ERROR(Await([&] {
    variable = exchange_.TakeLanded();
    return variable.has_value() || exchange_.Landed(slot);
  }));
  return variable;
}

void ExchangeDriver::SetServers(std::vector<BulkServer> servers) {
  {
    MutexLock lock(&mu_);
    new_servers_ = std::move(servers);
  }
  transport_->Wake();
}

bool ExchangeDriver::Drive(absl::Duration timeout) {
  std::optional<std::vector<BulkServer>> servers;
  {
    MutexLock lock(&mu_);
    servers.swap(new_servers_);
  }
  if (servers.has_value()) exchange_.SetServers(*servers);
  return exchange_.Drive(timeout);
}

void ExchangeDriver::Execute(std::function<void()> command) {
  if (!thread_.Joinable()) return command();
  MutexLock lock(&mu_);
  commands_.push_back(std::move(command));
}

absl::Status ExchangeDriver::Await(absl::FunctionRef<bool()> done) {
  if (!thread_.Joinable()) {
    while (exchange_.status().ok() && !done()) Drive(absl::InfiniteDuration());
    return exchange_.status();
  }
  Execute([this, done] { awaited_.emplace(done); });
  transport_->Wake();
  MutexLock lock(&mu_);
  while (!outcome_.has_value()) finished_.Wait(&mu_);
  return *std::exchange(outcome_, std::nullopt);
}

void ExchangeDriver::Run() {
  std::vector<std::function<void()>> commands;
  while (TakeCommands(&commands)) {
    for (const std::function<void()>& command : commands) command();
    commands.clear();
    EndWait();
    Drive(absl::InfiniteDuration());
  }
}

bool ExchangeDriver::TakeCommands(std::vector<std::function<void()>>* commands) {
  MutexLock lock(&mu_);
  commands->swap(commands_);
  return !quit_;
}

void ExchangeDriver::EndWait() {
  if (!awaited_.has_value() || (exchange_.status().ok() && !(*awaited_)())) return;
  awaited_.reset();
  MutexLock lock(&mu_);
  outcome_ = exchange_.status();
  finished_.NotifyAll();
}

}  // namespace keelson
