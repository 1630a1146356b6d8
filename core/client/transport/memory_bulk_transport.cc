#include "core/client/transport/memory_bulk_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/local_socket.h"

namespace keelson {
namespace {

// A bulk message's payload, and as much for its other fields as a server takes
// (parameter_service.proto).
constexpr size_t kMessageBytes = kBulkPayloadBytes + (1 << 20);

}  // namespace

MemoryBulkTransport::Shard::Shard(const BulkServer& server)
    : address(MemoryAddress(server.address)),
      peer(absl::StrCat(server.name, " at ", server.address)) {}

absl::StatusOr<std::unique_ptr<MemoryBulkTransport>> MemoryBulkTransport::Connect(
    const std::vector<BulkServer>& servers, Claim claim, size_t calls,
    const std::set<size_t>& uncalled) {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return absl::ResourceExhaustedError("eventfd: no descriptor is left");
  std::unique_ptr<MemoryBulkTransport> transport(
      new MemoryBulkTransport(std::move(claim), calls, wake));
  for (size_t s = 0; s < servers.size(); ++s) {
    transport->shards_.emplace_back(servers[s]);
    if (!uncalled.contains(s)) RETURN_IF_ERROR(transport->Reach(s));
  }
  return transport;
}

MemoryBulkTransport::~MemoryBulkTransport() { close(wake_); }

absl::Status MemoryBulkTransport::Connect(Shard* shard) const {
  if (shard->client != nullptr) return absl::OkStatus();
  if (shard->address.empty()) return absl::UnavailableError("another host");
  absl::StatusOr<std::unique_ptr<MemoryClient>> client =
      MemoryClient::Connect(shard->address, claim_, calls_, kMessageBytes);
  if (!client.ok()) return absl::UnavailableError(client.status().message());
  shard->client = *std::move(client);
  return absl::OkStatus();
}

void MemoryBulkTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                                absl::Duration timeout, uint64_t tag) {
  Shard& peer = shards_[shard];
  const absl::Status sent = Send(&peer, method, request, tag);
  if (sent.ok()) {
    peer.calls[tag] = absl::Now() + timeout;
    return;
  }
  // The connection has ended.
  if (absl::IsUnavailable(sent)) GiveUp(&peer, absl::InfinitePast(), sent.message());
  completed_.push_back(
      {tag, absl::Status(sent.code(), absl::StrCat(peer.peer, ": ", sent.message())), ByteRope()});
}

// Tags may be 0, and those of the connection may not.
absl::Status MemoryBulkTransport::Send(Shard* shard, BulkMethod method, const ByteRope& request,
                                       uint64_t tag) {
  RETURN_IF_ERROR(Connect(shard));
  if (!shard->client->has_room()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("expected at most ", calls_, " calls at a time, found one more"));
  }
  return shard->client->Start(BulkMethodPath(method), request, tag + 1);
}

std::optional<BulkCompletion> MemoryBulkTransport::Next(absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  while (completed_.empty()) {
    if (!Wait(std::min(until, FirstDeadline()))) break;
    GiveUpLate(absl::Now());
    if (completed_.empty() && absl::Now() >= until) break;
  }
  return TakeCompleted();
}

std::optional<BulkCompletion> MemoryBulkTransport::TakeCompleted() {
  if (completed_.empty()) return std::nullopt;
  BulkCompletion completion = std::move(completed_.front());
  completed_.pop_front();
  return completion;
}

absl::Time MemoryBulkTransport::FirstDeadline() const {
  absl::Time first = absl::InfiniteFuture();
  for (const Shard& shard : shards_) {
    for (const auto& [tag, deadline] : shard.calls) first = std::min(first, deadline);
  }
  return first;
}

bool MemoryBulkTransport::Wait(absl::Time until) {
  std::vector<pollfd> fds = {{wake_, POLLIN, 0}};
  std::vector<Shard*> waiting;
  for (Shard& shard : shards_) {
    if (shard.calls.empty()) continue;
    fds.push_back({shard.client->fd(), POLLIN, 0});
    waiting.push_back(&shard);
  }
  const timespec left =
      absl::ToTimespec(std::clamp(until - absl::Now(), absl::ZeroDuration(), absl::Hours(1)));
  if (ppoll(fds.data(), fds.size(), &left, nullptr) <= 0) return true;
  if (fds[0].revents != 0) {
    eventfd_t count;
    eventfd_read(wake_, &count);
    return false;
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (fds[i + 1].revents != 0) Receive(waiting[i]);
  }
  return true;
}

void MemoryBulkTransport::Receive(Shard* shard) {
  while (!shard->calls.empty()) {
    absl::StatusOr<std::optional<MemoryClient::Completion>> next = shard->client->Next();
    if (!next.ok()) return GiveUp(shard, absl::InfinitePast(), next.status().message());
    if (!next->has_value()) return;
    MemoryClient::Completion& ended = **next;
    if (shard->calls.erase(ended.tag - 1) == 0) continue;
    completed_.push_back({ended.tag - 1, FromGrpcStatus(ToGrpcStatus(ended.status), shard->peer),
                          std::move(ended.response)});
  }
}

void MemoryBulkTransport::GiveUpLate(absl::Time now) {
  for (Shard& shard : shards_) {
    const bool late = std::any_of(shard.calls.begin(), shard.calls.end(),
                                  [now](const auto& call) { return call.second <= now; });
    if (late) GiveUp(&shard, now, "no answer in time");
  }
}

void MemoryBulkTransport::GiveUp(Shard* shard, absl::Time now, absl::string_view why) {
  const std::string text = absl::StrCat(shard->peer, ": ", why);
  for (const auto& [tag, deadline] : shard->calls) {
    completed_.push_back(
        {tag, deadline <= now ? absl::DeadlineExceededError(text) : absl::UnavailableError(text),
         ByteRope()});
  }
  shard->calls.clear();
  shard->client.reset();
}

void MemoryBulkTransport::Wake() { eventfd_write(wake_, 1); }

void MemoryBulkTransport::Reset(size_t shard) {
  GiveUp(&shards_[shard], absl::InfinitePast(), "the connection was given up");
}

void MemoryBulkTransport::Redirect(size_t shard, const BulkServer& server) {
  Reset(shard);
  shards_[shard] = Shard(server);
}

}  // namespace keelson
