#include "core/rpc/memory_caller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/local_socket.h"
#include "core/wire/bulk_messages.h"

namespace keelson {
namespace {

// What a request and an answer may have: a bulk payload, and as much for its other fields as a
// server takes (parameter_service.proto). Larger ones travel by gRPC.
constexpr size_t kMessageBytes = kBulkPayloadBytes + (1 << 20);
constexpr size_t kMostIdle = 2;
// The pause after a server was not found: it is perhaps of another user, or another process's.
constexpr absl::Duration kRetryPause = absl::Seconds(1);

constexpr uint64_t kTag = 1;  // a connection has one call at a time

}  // namespace

MemoryCaller::MemoryCaller(std::string peer, const std::string& address, Claim claim,
                           const Clock* clock)
    : peer_(std::move(peer)),
      address_(MemoryAddress(address)),
      claim_(std::move(claim)),
      clock_(clock) {}

absl::StatusOr<std::unique_ptr<MemoryClient>> MemoryCaller::Take() {
  std::unique_ptr<MemoryClient> client;
  {
    MutexLock lock(&mu_);
    if (address_.empty() || clock_->Monotonic() < next_try_) {
      return absl::UnavailableError("not through memory");
    }
    const auto free =
        std::find_if(idle_.begin(), idle_.end(), [](const auto& idle) { return idle->has_room(); });
    if (free != idle_.end()) {
      client = std::move(*free);
      idle_.erase(free);
    }
  }
  if (client == nullptr) {
    absl::StatusOr<std::unique_ptr<MemoryClient>> made =
        MemoryClient::Connect(address_, claim_, /*calls=*/1, kMessageBytes);
    if (!made.ok()) {
      MutexLock lock(&mu_);
      next_try_ = clock_->Monotonic() + kRetryPause;
      return made.status();
    }
    client = *std::move(made);
  }
  MutexLock lock(&mu_);
  used_.insert(client.get());
  return client;
}

bool MemoryCaller::Return(std::unique_ptr<MemoryClient> client, bool whole) {
  MutexLock lock(&mu_);
  used_.erase(client.get());
  if (cancelled_.erase(client.get()) > 0) return true;
  if (whole && idle_.size() < kMostIdle) idle_.push_back(std::move(client));
  return false;
}

std::optional<absl::Status> MemoryCaller::Call(absl::string_view method,
                                               const google::protobuf::MessageLite& request,
                                               google::protobuf::MessageLite* response,
                                               absl::Duration timeout) {
  ByteRope bytes;
  const std::optional<absl::Status> status = Call(method, request, &bytes, timeout);
  if (!status.has_value() || !status->ok()) return status;
  if (response->ParseFromString(bytes.ToString())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(peer_, ": the answer to ", method, " is none"));
}

std::optional<absl::Status> MemoryCaller::Call(absl::string_view method,
                                               const google::protobuf::MessageLite& request,
                                               ByteRope* response, absl::Duration timeout) {
  absl::StatusOr<std::unique_ptr<MemoryClient>> client = Take();
  if (!client.ok()) return std::nullopt;
  absl::StatusOr<Answer> answer =
      CallAt(client->get(), method, request.SerializeAsString(), timeout);
  if (Return(*std::move(client), /*whole=*/answer.ok())) {
    return absl::CancelledError(absl::StrCat(peer_, ": its call was given up"));
  }
  if (absl::IsDeadlineExceeded(answer.status())) return answer.status();
  if (!answer.ok()) return std::nullopt;
  const absl::Status& status = answer->status;
  if (absl::IsUnimplemented(status) || absl::IsResourceExhausted(status)) return std::nullopt;
  if (!status.ok()) return FromGrpcStatus(ToGrpcStatus(status), peer_);
  *response = std::move(answer->bytes);
  return absl::OkStatus();
}

absl::StatusOr<MemoryCaller::Answer> MemoryCaller::CallAt(MemoryClient* client,
                                                          absl::string_view method,
                                                          absl::string_view request,
                                                          absl::Duration timeout) const {
  const absl::Time until = absl::Now() + timeout;
  ByteRope rope;
  rope.AppendBorrowed(request.data(), request.size());
  const absl::Status started = client->Start(method, rope, kTag);
  // It has not been sent, and the connection is as good as before.
  if (absl::IsInvalidArgument(started)) return Answer{absl::ResourceExhaustedError("no room"), {}};
  RETURN_IF_ERROR(started);
  ASSIGN_OR_RETURN(std::optional<MemoryClient::Completion> ended, client->Await(until));
  if (!ended.has_value()) {
    return absl::DeadlineExceededError(absl::StrCat(peer_, ": no answer in time"));
  }
  return Answer{ended->status, std::move(ended->response)};
}

void MemoryCaller::Cancel() {
  MutexLock lock(&mu_);
  cancelled_ = used_;
  for (MemoryClient* const client : used_) client->End();
}

}  // namespace keelson
