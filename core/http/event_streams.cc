#include "core/http/event_streams.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/http/connection.h"

namespace keelson {
namespace {

// The longest wait for a source; then the client is checked.
constexpr absl::Duration kSlice = absl::Milliseconds(100);
constexpr char kPing[] = ": ping\n\n";

}  // namespace

EventStreams::EventStreams(int max_streams, absl::Duration ping_interval, ClientSockets* sockets)
    : max_streams_(max_streams), ping_interval_(ping_interval), sockets_(sockets) {}

EventStreams::~EventStreams() {
  std::list<Stream> streams;
  {
    MutexLock lock(&mu_);
    // splice leaves the elements in place.
    streams.splice(streams.end(), streams_);
  }
  for (Stream& stream : streams) stream.thread.join();
}

bool EventStreams::Reserve() {
  MutexLock lock(&mu_);
  if (reserved_ >= max_streams_) return false;
  ++reserved_;
  return true;
}

void EventStreams::Release() {
  MutexLock lock(&mu_);
  --reserved_;
}

void EventStreams::Start(int fd, std::shared_ptr<EventSource> source) {
  Reap();
  MutexLock lock(&mu_);
  Stream* const stream = &streams_.emplace_back();
  try {
    stream->thread = std::thread([this, fd, source = std::move(source), stream]() mutable {
      Run(fd, std::move(source), stream);
    });
  } catch (const std::exception& error) {
    LogError("no thread for a stream of events: ", error.what());
    streams_.pop_back();
    --reserved_;
    sockets_->Close(fd);
  }
}

void EventStreams::Run(int fd, std::shared_ptr<EventSource> source, Stream* stream) {
  try {
    Tell(fd, source.get());
  } catch (const std::exception& error) {
    LogError("a stream of events has failed: ", error.what());
  }
  source.reset();
  sockets_->Close(fd);
  MutexLock lock(&mu_);
  --reserved_;
  stream->ended = true;
}

void EventStreams::Tell(int fd, EventSource* source) const {
  const Clock* const clock = Clock::Real();
  SocketStream connection(fd, ping_interval_);
  absl::Duration told = clock->Monotonic();
  while (!sockets_->cut_off() && !connection.ClientHasGone()) {
    std::optional<std::string> bytes = source->Next(std::min(kSlice, ping_interval_));
    if (!bytes.has_value()) return;
    const absl::Duration now = clock->Monotonic();
    if (bytes->empty()) {
      if (now - told < ping_interval_) continue;
      bytes = kPing;
    }
    told = now;
    connection.SetTimeout(ping_interval_);
    if (!connection.Write(*bytes)) return;
  }
}

void EventStreams::Reap() {
  std::list<Stream> ended;
  {
    MutexLock lock(&mu_);
    for (auto stream = streams_.begin(); stream != streams_.end();) {
      const auto next = std::next(stream);
      if (stream->ended) ended.splice(ended.end(), streams_, stream);
      stream = next;
    }
  }
  for (Stream& stream : ended) stream.thread.join();
}

}  // namespace keelson
