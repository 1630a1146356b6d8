// Serves calls of a generated service that may have to wait, without a thread for each of them.
// Callers are checked before their requests are read, and requests before they are decoded, as in
// guarded_call.h.
#ifndef KEELSON_CORE_RPC_WAITING_CALL_H_
#define KEELSON_CORE_RPC_WAITING_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rpc/access.h"
#include "core/rpc/byte_method.h"
#include "core/rpc/guarded_call.h"

namespace keelson {

// Answers a call, or refuses it. It is called once, by any thread, also after the wait was
// cancelled.
using AnswerCall = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;
// Handles a request, given as bytes, on a thread of gRPC, which it does not block.
using BeginCall = std::function<CancelWait(grpc::ByteBuffer request, CallerKind kind,
                                           const grpc::ServerContextBase& context, AnswerCall)>;

// The handler of a method with one request and one response. Give it to MarkMethodStreamed, which
// makes gRPC leave the request unread, and then to MarkMethodRawCallback, one of its own each.
// `calls` outlives the service's server.
grpc::internal::MethodHandler* WaitingHandler(GuardedCalls* calls, std::string method,
                                              BeginCall begin);

// The same for messages. `begin(request, kind, answer)` returns a CancelWait; `answer` takes an
// absl::StatusOr<Response>.
template <typename Request, typename Response>
grpc::internal::MethodHandler* WaitingUnary(
    GuardedCalls* calls, std::string method,
    std::function<CancelWait(const Request&, CallerKind,
                             std::function<void(absl::StatusOr<Response>)>)>
        begin) {
  BeginCall decode = [calls, method, begin = std::move(begin)](
                         grpc::ByteBuffer bytes, CallerKind kind,
                         const grpc::ServerContextBase& context, AnswerCall answer) -> CancelWait {
    Request request;
    const absl::Status decoded = calls->Decode(method, context, &bytes, &request);
    if (!decoded.ok()) {
      answer(decoded);
      return nullptr;
    }
    return begin(request, kind, [answer = std::move(answer)](absl::StatusOr<Response> response) {
      if (!response.ok()) return answer(response.status());
      answer(GuardedCalls::BytesOf(*response));
    });
  };
  return WaitingHandler(calls, std::move(method), std::move(decode));
}

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_WAITING_CALL_H_
