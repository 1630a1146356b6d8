#include "testing/services/call_faults.h"

#include "core/base/status_macros.h"

namespace keelson {

void CallFaults::AwaitSevered() {
  MutexLock lock(&mu_);
  while (!severed_) changed_.Wait(&mu_);
}

absl::Status CallFaults::Call(const Message& request, Message* response,
                              absl::FunctionRef<absl::Status()> execute) {
  UntypedAction answer;
  UntypedAction after;
  RETURN_IF_ERROR(Enter(request, &answer, &after));
  RETURN_IF_ERROR(answer != nullptr ? answer(request, response) : execute());
  return after != nullptr ? after(request, response) : absl::OkStatus();
}

absl::Status CallFaults::Enter(const Message& request, UntypedAction* answer,
                               UntypedAction* after) {
  std::unique_ptr<Message> copy(request.New());
  copy->CopyFrom(request);
  MutexLock lock(&mu_);
  Calls& calls = calls_[request.GetDescriptor()->full_name()];
  calls.requests.push_back(std::move(copy));
  changed_.NotifyAll();
  while (calls.blocked) changed_.Wait(&mu_);
  if (severed_) return absl::UnavailableError("severed by the test");
  if (!calls.errors.empty()) {
    const absl::Status error = std::move(calls.errors.front());
    calls.errors.pop_front();
    return error;
  }
  *answer = calls.answer;
  *after = calls.after;
  return absl::OkStatus();
}

void CallFaults::SetSevered(bool severed) {
  MutexLock lock(&mu_);
  severed_ = severed;
  changed_.NotifyAll();
}

void CallFaults::BlockCalls(const std::string& method, bool blocked) {
  MutexLock lock(&mu_);
  calls_[method].blocked = blocked;
  changed_.NotifyAll();
}

void CallFaults::FailCalls(const std::string& method, const std::vector<absl::Status>& errors) {
  MutexLock lock(&mu_);
  calls_[method].errors.assign(errors.begin(), errors.end());
}

void CallFaults::SetAnswer(const std::string& method, UntypedAction answer) {
  MutexLock lock(&mu_);
  calls_[method].answer = std::move(answer);
}

void CallFaults::SetAfter(const std::string& method, UntypedAction after) {
  MutexLock lock(&mu_);
  calls_[method].after = std::move(after);
}

int CallFaults::CountCalls(const std::string& method) const {
  MutexLock lock(&mu_);
  return static_cast<int>(calls_[method].requests.size());
}

void CallFaults::AwaitCalls(const std::string& method, int count) const {
  MutexLock lock(&mu_);
  const Calls& calls = calls_[method];
  while (static_cast<int>(calls.requests.size()) < count) changed_.Wait(&mu_);
}

}  // namespace keelson
