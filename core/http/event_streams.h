// The open responses of a server.
#ifndef KEELSON_CORE_HTTP_EVENT_STREAMS_H_
#define KEELSON_CORE_HTTP_EVENT_STREAMS_H_

#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/http/message.h"
#include "core/http/sockets.h"

namespace keelson {

// Writes the events of each source to its client, on one thread per stream, until the source ends,
// the client leaves or all are cut off. Thread-safe.
class EventStreams {
 public:
  // As HttpServer::Options has them.
  struct Limits {
    int max_streams = 0;
    int max_per_client = 0;
    absl::Duration ping_interval;
  };

  explicit EventStreams(const Limits& limits) : limits_(limits) {}

  // Cuts the streams off and waits for their ends.
  ~EventStreams();

  // Takes a place for a stream of this client (ClientOf). RESOURCE_EXHAUSTED: there is
  // none, or none for this client.
  absl::Status Reserve(const std::string& client);
  // Returns a reserved place without a stream.
  void Release(const std::string& client);

  struct Stream {
    int fd = -1;
    std::string client;
    // The answer's head, and the rest.
    std::string head;
    std::shared_ptr<EventSource> source;
  };

  // Sends the answer, on a reserved place. Closes the socket and returns the place at the end.
  void Start(Stream stream);

 private:
  struct Teller {
    std::thread thread;
    bool ended = false;
  };

  // The body of a stream's thread.
  void Run(Stream stream, Teller* teller);
  void Tell(const Stream& stream) const;
  void ReleaseLocked(const std::string& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Joins the threads of streams that have ended.
  void Reap();

  const Limits limits_;
  ClientSockets sockets_;

  Mutex mu_;
  int reserved_ ABSL_GUARDED_BY(mu_) = 0;
  // Client -> its share of them.
  std::map<std::string, int> of_client_ ABSL_GUARDED_BY(mu_);
  std::list<Teller> tellers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_EVENT_STREAMS_H_
