#include "core/http/event_streams.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/http/socket_writer.h"

namespace keelson {
namespace {

// The longest wait for a source; then the client is checked.
constexpr absl::Duration kSlice = absl::Milliseconds(100);
constexpr char kPing[] = ": ping\n\n";

}  // namespace

EventStreams::~EventStreams() {
  sockets_.CutOff();
  std::list<Teller> tellers;
  {
    MutexLock lock(&mu_);
    // splice leaves the elements in place.
    tellers.splice(tellers.end(), tellers_);
  }
  for (Teller& teller : tellers) teller.thread.join();
}

absl::Status EventStreams::Reserve(const std::string& client) {
  MutexLock lock(&mu_);
  if (reserved_ >= limits_.max_streams) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", limits_.max_streams, " streams of events already, which is the most"));
  }
  int& of_client = of_client_[client];
  if (of_client >= limits_.max_per_client) {
    return absl::ResourceExhaustedError(absl::StrCat("there are ", limits_.max_per_client,
                                                     " streams of events to ", client,
                                                     " already, which is the most for one client"));
  }
  ++of_client;
  ++reserved_;
  return absl::OkStatus();
}

void EventStreams::Release(const std::string& client) {
  MutexLock lock(&mu_);
  ReleaseLocked(client);
}

void EventStreams::ReleaseLocked(const std::string& client) {
  --reserved_;
  const auto of_client = of_client_.find(client);
  if (--of_client->second == 0) of_client_.erase(of_client);
}

void EventStreams::Start(Stream stream) {
  Reap();
  const int fd = stream.fd;
  const std::string client = stream.client;
  sockets_.Add(fd);
  MutexLock lock(&mu_);
  Teller* const teller = &tellers_.emplace_back();
  try {
    teller->thread = std::thread(
        [this, stream = std::move(stream), teller]() mutable { Run(std::move(stream), teller); });
  } catch (const std::exception& error) {
    LogError("no thread for a stream of events: ", error.what());
    tellers_.pop_back();
    ReleaseLocked(client);
    sockets_.Close(fd);
  }
}

void EventStreams::Run(Stream stream, Teller* teller) {
  try {
    Tell(stream);
  } catch (const std::exception& error) {
    LogError("a stream of events has failed: ", error.what());
  }
  stream.source.reset();
  sockets_.Close(stream.fd);
  MutexLock lock(&mu_);
  ReleaseLocked(stream.client);
  teller->ended = true;
}

void EventStreams::Tell(const Stream& stream) const {
  const Clock* const clock = Clock::Real();
  SocketWriter client(stream.fd);
  if (!client.Write(stream.head, limits_.ping_interval)) return;
  absl::Duration told = clock->Monotonic();
  while (!sockets_.cut_off() && !client.ClientHasGone()) {
    std::optional<std::string> bytes = stream.source->Next(std::min(kSlice, limits_.ping_interval));
    if (!bytes.has_value()) return;
    const absl::Duration now = clock->Monotonic();
    if (bytes->empty()) {
      if (now - told < limits_.ping_interval) continue;
      bytes = kPing;
    }
    told = now;
    if (!client.Write(*bytes, limits_.ping_interval)) return;
  }
}

void EventStreams::Reap() {
  std::list<Teller> ended;
  {
    MutexLock lock(&mu_);
    for (auto teller = tellers_.begin(); teller != tellers_.end();) {
      const auto next = std::next(teller);
      if (teller->ended) ended.splice(ended.end(), tellers_, teller);
      teller = next;
    }
  }
  for (Teller& teller : ended) teller.thread.join();
}

}  // namespace keelson
