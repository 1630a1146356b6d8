#include "core/rpc/guarded_call.h"

#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/protocol.h"
#include "google/protobuf/descriptor.h"

namespace keelson {

std::string FullMethodName(absl::string_view service, absl::string_view method) {
  return absl::StrCat("/", service, "/", method);
}

int MethodIndex(absl::string_view service, absl::string_view method) {
  return google::protobuf::DescriptorPool::generated_pool()
      ->FindMethodByName(absl::StrCat(service, ".", method))
      ->index();
}

absl::StatusOr<CallerKind> GuardedCalls::Admit(absl::string_view method,
                                               const grpc::ServerContextBase& context) const {
  if (guard_ == nullptr) return CallerKind::kStranger;
  return guard_->Check(method, context);
}

absl::StatusOr<bool> GuardedCalls::Read(absl::string_view method,
                                        const grpc::ServerContext& context, ByteCall* call,
                                        google::protobuf::Message* message) const {
  grpc::ByteBuffer bytes;
  if (!call->Read(&bytes)) return false;
  RETURN_IF_ERROR(Decode(method, context, &bytes, message));
  return true;
}

absl::Status GuardedCalls::Decode(absl::string_view method, const grpc::ServerContextBase& context,
                                  grpc::ByteBuffer* bytes,
                                  google::protobuf::Message* message) const {
  RETURN_IF_ERROR(guard_ == nullptr ? CheckRequestSize(method, bytes->Length())
                                    : guard_->CheckSize(method, bytes->Length(), context));
  grpc::ProtoBufferReader reader(bytes);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected a ", message->GetTypeName(), ", found ",
                                                 bytes->Length(), " bytes that are none"));
}

absl::Status GuardedCalls::NoRequest() {
  return absl::InvalidArgumentError("expected a message, found none that is whole");
}

grpc::internal::MethodHandler* GuardedCalls::Handler(
    std::function<absl::Status(grpc::ServerContext*, ByteCall*)> serve) {
  return new grpc::internal::TemplatedBidiStreamingHandler<ByteCall, false>(
      [serve = std::move(serve)](grpc::ServerContext* context, ByteCall* call) {
        ShowProtocol(context);
        return ToGrpcStatus(serve(context, call));
      });
}

absl::Status GuardedCalls::ReadOnly(absl::string_view method, CallerKind kind,
                                    grpc::ServerContext* context, ByteCall* call,
                                    google::protobuf::Message* request) {
  PendingReads* const pending = kind == CallerKind::kStranger ? &strangers_ : &members_;
  const PendingReads::Scope scope(pending, [context] { context->TryCancel(); });
  ASSIGN_OR_RETURN(const bool found, Read(method, *context, call, request));
  return found ? absl::OkStatus() : NoRequest();
}

grpc::ByteBuffer GuardedCalls::BytesOf(const google::protobuf::Message& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

bool GuardedCalls::Write(const google::protobuf::Message& message, ByteCall* call) {
  return call->Write(BytesOf(message));
}

}  // namespace keelson
