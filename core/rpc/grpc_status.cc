#include "core/rpc/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace keelson {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view peer) {
  if (status.ok()) return absl::OkStatus();
  auto code = static_cast<absl::StatusCode>(status.error_code());
  // Callers never cancel their calls, so the peer did: it is shutting down, or cut off a stream
  // that made no progress.
  if (code == absl::StatusCode::kCancelled) code = absl::StatusCode::kUnavailable;
  if (code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded) {
    return absl::Status(code, absl::StrCat(peer, ": ", status.error_message()));
  }
  return absl::Status(code, status.error_message());
}

}  // namespace keelson
