// Methods of a service with small requests and responses as bytes, whatever carries them.
#ifndef KEELSON_CORE_RPC_BYTE_METHOD_H_
#define KEELSON_CORE_RPC_BYTE_METHOD_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/rpc/access.h"

namespace keelson {

// Ends the wait of a call whose caller is gone: the call is answered soon. It may come when the
// call has been answered, and then does nothing. Null: the call has been answered.
using CancelWait = std::function<void()>;

// A method with one request and one response. Its callers have been checked, and so have the sizes
// of their requests.
struct ByteMethod {
  // Answers a call, or refuses it. It is called once, by any thread, also after the wait was
  // cancelled.
  using Answer = std::function<void(absl::StatusOr<std::string>)>;

  std::string name;  // "/keelson.v1.ChiefService/AcquireWork"
  // Handles a request on a thread of its caller's connection, which takes no other request before
  // this returns. The bytes are the caller's until then.
  std::function<CancelWait(absl::string_view request, CallerKind kind, Answer answer)> begin;
};

// The method of messages that `begin(request, kind, answer)` is; `answer` takes an
// absl::StatusOr<Response>. INVALID_ARGUMENT to callers whose requests are none.
template <typename Request, typename Response>
ByteMethod ByteMethodOf(std::string name,
                        std::function<CancelWait(const Request&, CallerKind,
                                                 std::function<void(absl::StatusOr<Response>)>)>
                            begin) {
  return {std::move(name),
          [begin = std::move(begin)](absl::string_view bytes, CallerKind kind,
                                     ByteMethod::Answer answer) -> CancelWait {
            Request request;
            if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
              answer(absl::InvalidArgumentError(absl::StrCat("expected a ", request.GetTypeName(),
                                                             ", found ", bytes.size(),
                                                             " bytes that are none")));
              return nullptr;
            }
            return begin(request, kind,
                         [answer = std::move(answer)](absl::StatusOr<Response> response) {
                           if (!response.ok()) return answer(response.status());
                           answer(response->SerializeAsString());
                         });
          }};
}

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_BYTE_METHOD_H_
