// Serves the calls of a generated service so that callers are checked before their requests are
// read, and requests before they are decoded.
#ifndef KEELSON_CORE_RPC_GUARDED_CALL_H_
#define KEELSON_CORE_RPC_GUARDED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/access.h"
#include "core/rpc/pending_reads.h"
#include "google/protobuf/message.h"

namespace keelson {

// A call whose messages are bytes. A generated service serves a method so after
// MarkMethodStreamed(MethodIndex(...), calls.Handler(...)): its own code decodes a request before
// it calls anything.
using ByteCall = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// "/keelson.v1.ChiefService/Register"
std::string FullMethodName(absl::string_view service, absl::string_view method);
// The position of a method in its service's definition, which generated code knows it by.
int MethodIndex(absl::string_view service, absl::string_view method);

// The checks of a service's calls. Thread-safe; outlives the service's server.
class GuardedCalls {
 public:
  // A caller that is nobody known holds a thread while its request is not whole: of so many calls
  // the oldest is cancelled when another one comes. Likewise for members.
  static constexpr size_t kPendingStrangers = 64;
  static constexpr size_t kPendingMembers = 1024;

  // A call that holds no thread (waiting_call.h) gives way to others only when its request has
  // taken this long: after a round all workers call at a time.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `guard` outlives this; null admits everyone, for tests and benchmarks. So does `clock`.
  explicit GuardedCalls(const AccessGuard* guard, const Clock* clock = Clock::Real())
      : guard_(guard),
        unhurried_strangers_(kPendingStrangers, kPatience, clock),
        unhurried_members_(kPendingMembers, kPatience, clock) {}

  // kStranger without a guard. PERMISSION_DENIED: AccessGuard::Check.
  absl::StatusOr<CallerKind> Admit(absl::string_view method,
                                   const grpc::ServerContextBase& context) const;
  // Reads the next message. False: the caller has sent its last one, or is gone. INVALID_ARGUMENT:
  // it is larger than the method's requests may be, or no such message.
  absl::StatusOr<bool> Read(absl::string_view method, const grpc::ServerContext& context,
                            ByteCall* call, google::protobuf::Message* message) const;

  // The message that a request's bytes are. INVALID_ARGUMENT: Read's.
  absl::Status Decode(absl::string_view method, const grpc::ServerContextBase& context,
                      grpc::ByteBuffer* bytes, google::protobuf::Message* message) const;
  // INVALID_ARGUMENT: the call has ended without the request that its method expects.
  static absl::Status NoRequest();
  // The requests of such callers that are being read without a thread each.
  PendingReads* Unhurried(CallerKind kind) {
    return kind == CallerKind::kStranger ? &unhurried_strangers_ : &unhurried_members_;
  }

  // Serves a method with one request and one response, by `handle(request, &response, kind)`.
  template <typename Request, typename Response>
  grpc::internal::MethodHandler* Unary(
      std::string method,
      std::function<absl::Status(const Request&, Response*, CallerKind)> handle) {
    return Handler([this, method = std::move(method), handle = std::move(handle)](
                       grpc::ServerContext* context, ByteCall* call) -> absl::Status {
      ASSIGN_OR_RETURN(const CallerKind kind, Admit(method, *context));
      Request request;
      RETURN_IF_ERROR(ReadOnly(method, kind, context, call, &request));
      Response response;
      RETURN_IF_ERROR(handle(request, &response, kind));
      Write(response, call);
      return absl::OkStatus();
    });
  }

  // Serves a method by code that reads and writes by itself. Answers show the message protocol.
  static grpc::internal::MethodHandler* Handler(
      std::function<absl::Status(grpc::ServerContext*, ByteCall*)> serve);

  // Reads the request of a method that has one. INVALID_ARGUMENT: Read's, or there is none.
  absl::Status ReadOnly(absl::string_view method, CallerKind kind, grpc::ServerContext* context,
                        ByteCall* call, google::protobuf::Message* request);
  static grpc::ByteBuffer BytesOf(const google::protobuf::Message& message);
  // False: the caller is gone.
  static bool Write(const google::protobuf::Message& message, ByteCall* call);

 private:
  const AccessGuard* const guard_;
  PendingReads strangers_{kPendingStrangers};
  PendingReads members_{kPendingMembers};
  PendingReads unhurried_strangers_;
  PendingReads unhurried_members_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_GUARDED_CALL_H_
