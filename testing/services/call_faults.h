// Faults that a test arranges for the calls of a service, and a record of those calls.
#ifndef KEELSON_TESTING_SERVICES_CALL_FAULTS_H_
#define KEELSON_TESTING_SERVICES_CALL_FAULTS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "google/protobuf/message.h"

namespace keelson {

// What FaultyChiefService and FaultyParameterControl have in common. Methods are named by their
// pointers, &ChiefService::Register. Every call is recorded, those that fail too. Thread-safe.
class CallFaults {
 public:
  template <typename Service, typename Request, typename... Rest>
  using Method = absl::Status (Service::*)(const Request&, Rest...);
  template <typename Request, typename Response>
  using Action = std::function<absl::Status(const Request&, Response*)>;

  // ---- Faults, in the order in which they take effect.

  // While `blocked`, calls of the method wait.
  template <typename M>
  void Block(M method, bool blocked) {
    BlockCalls(KeyOf(method), blocked);
  }
  // From now on no call is executed: UNAVAILABLE. Restore ends this.
  void Sever() { SetSevered(true); }
  void Restore() { SetSevered(false); }
  void AwaitSevered();
  // The next calls of the method return these errors, one after the other, and are not executed.
  template <typename M>
  void FailNext(M method, const std::vector<absl::Status>& errors) {
    FailCalls(KeyOf(method), errors);
  }
  // `answer` executes the method's calls from now on.
  template <typename Service, typename Request, typename Response>
  void Answer(Method<Service, Request, Response*> method,
              std::type_identity_t<Action<Request, Response>> answer) {
    SetAnswer(KeyOf(method), Untyped<Request, Response>(std::move(answer)));
  }
  // `after` is called after a call of the method that succeeded; its status replaces the call's.
  template <typename Service, typename Request, typename Response>
  void After(Method<Service, Request, Response*> method,
             std::type_identity_t<Action<Request, Response>> after) {
    SetAfter(KeyOf(method), Untyped<Request, Response>(std::move(after)));
  }

  // ---- The record.

  template <typename M>
  int Count(M method) const {
    return CountCalls(KeyOf(method));
  }
  // Waits until the method has been called so often in all.
  template <typename M>
  void AwaitCount(M method, int count) const {
    AwaitCalls(KeyOf(method), count);
  }
  // The requests of all calls of the method; of a stream of requests, the first ones.
  template <typename Service, typename Request, typename... Rest>
  std::vector<Request> Requests(Method<Service, Request, Rest...> method) const {
    std::vector<Request> requests;
    MutexLock lock(&mu_);
    for (const auto& request : calls_[KeyOf(method)].requests) {
      requests.push_back(static_cast<const Request&>(*request));
    }
    return requests;
  }

 protected:
  using Message = google::protobuf::Message;

  CallFaults() = default;
  ~CallFaults() = default;

  // Records a call and returns its status; calls `execute` unless a fault takes its place.
  absl::Status Call(const Message& request, Message* response,
                    absl::FunctionRef<absl::Status()> execute);

 private:
  using UntypedAction = Action<Message, Message>;
  struct Calls {
    std::vector<std::unique_ptr<const Message>> requests;
    bool blocked = false;
    std::deque<absl::Status> errors;
    UntypedAction answer;
    UntypedAction after;
  };

  // No two methods of a service have the same request.
  template <typename Service, typename Request, typename... Rest>
  static std::string KeyOf(Method<Service, Request, Rest...>) {
    return Request::descriptor()->full_name();
  }
  template <typename Request, typename Response>
  static UntypedAction Untyped(Action<Request, Response> action) {
    if (action == nullptr) return nullptr;
    return [action = std::move(action)](const Message& request, Message* response) {
      return action(static_cast<const Request&>(request), static_cast<Response*>(response));
    };
  }

  void SetSevered(bool severed);
  void BlockCalls(const std::string& method, bool blocked);
  void FailCalls(const std::string& method, const std::vector<absl::Status>& errors);
  void SetAnswer(const std::string& method, UntypedAction answer);
  void SetAfter(const std::string& method, UntypedAction after);
  int CountCalls(const std::string& method) const;
  void AwaitCalls(const std::string& method, int count) const;
  // The fault that takes the place of a call; OK: none.
  absl::Status Enter(const Message& request, UntypedAction* answer, UntypedAction* after);

  mutable Mutex mu_;
  mutable CondVar changed_;
  bool severed_ ABSL_GUARDED_BY(mu_) = false;
  mutable std::map<std::string, Calls> calls_ ABSL_GUARDED_BY(mu_);  // by request
};

}  // namespace keelson

#endif  // KEELSON_TESTING_SERVICES_CALL_FAULTS_H_
