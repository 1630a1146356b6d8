// The open responses of a server.
#ifndef KEELSON_CORE_HTTP_EVENT_STREAMS_H_
#define KEELSON_CORE_HTTP_EVENT_STREAMS_H_

#include <list>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/http/message.h"
#include "core/http/sockets.h"

namespace keelson {

// Writes the events of each source to its client, on one thread per stream, until the source ends,
// the client leaves or all are cut off. Thread-safe.
class EventStreams {
 public:
  // `sockets` outlives this. `ping_interval`: see HttpServer::Options.
  EventStreams(int max_streams, absl::Duration ping_interval, ClientSockets* sockets);

  // Waits for the streams to end, which they do soon after their sockets are cut off.
  ~EventStreams();

  // Takes one of `max_streams` places. False: there is none.
  bool Reserve();
  // Returns a reserved place without a stream.
  void Release();

  // Continues the client's open answer, on a reserved place. Closes the socket and returns the
  // place at the end.
  void Start(int fd, std::shared_ptr<EventSource> source);

 private:
  struct Stream {
    std::thread thread;
    bool ended = false;
  };

  // The body of a stream's thread.
  void Run(int fd, std::shared_ptr<EventSource> source, Stream* stream);
  void Tell(int fd, EventSource* source) const;
  // Joins the threads of streams that have ended.
  void Reap();

  const int max_streams_;
  const absl::Duration ping_interval_;
  ClientSockets* const sockets_;

  Mutex mu_;
  int reserved_ ABSL_GUARDED_BY(mu_) = 0;
  std::list<Stream> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_EVENT_STREAMS_H_
