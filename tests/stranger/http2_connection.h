// A connection to a gRPC server on which the caller decides about every byte.
#ifndef KEELSON_TESTS_STRANGER_HTTP2_CONNECTION_H_
#define KEELSON_TESTS_STRANGER_HTTP2_CONNECTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/stranger/http2_frames.h"

namespace keelson {

// A socket that does not block and is connected, or being connected, to a port of 127.0.0.1.
// `source`: an address of this machine, "127.0.0.66". UNAVAILABLE: there is none.
absl::StatusOr<int> ConnectFrom(const std::string& source, int port);

// Bytes of a call: a text, then zeros.
struct CallBody {
  std::string text;
  int64_t zeros = 0;
};

// Nothing is sent or received but in Pump. Not thread-safe.
class Http2Connection {
 public:
  // Begins with the preface. UNAVAILABLE: as ConnectFrom.
  static absl::StatusOr<std::unique_ptr<Http2Connection>> Open(const std::string& source, int port);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // These bytes as they are, before what waits for a window.
  void Send(absl::string_view bytes) { out_.append(bytes.data(), bytes.size()); }

  // A call that sends `body` as fast as the server's windows allow, and then ends unless `ends` is
  // false. Returns its stream.
  uint32_t Call(absl::string_view method, const HeaderList& metadata, CallBody body,
                bool ends = true);

  // Ends a call at once, with RST_STREAM.
  void Reset(uint32_t stream);

  // The stream that the next call gets.
  uint32_t next_stream() const { return next_stream_; }

  // Sends and receives what is possible, waiting for it no longer than `wait`. With `takes` false
  // nothing is received. False: the server has closed the connection.
  bool Pump(absl::Duration wait, bool takes = true);

  bool sent_all() const { return out_.empty() && bodies_.empty(); }
  // Calls that got a message as their answer, those that are over, and those that are not.
  int64_t answered() const { return answered_; }
  int64_t ended() const { return ended_; }
  int64_t under_way() const { return next_stream_ / 2 - ended_; }
  // Messages of the last call that was answered.
  const std::string& answer() const { return answer_; }

 private:
  explicit Http2Connection(int socket) : socket_(socket), out_(Preface()) {}

  struct Pending {
    CallBody body;
    bool ends;
  };

  void End(uint32_t stream);
  void FillFromBodies();
  bool SendOut();
  bool Receive();
  void TakeFrames();
  void TakeFrame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload);
  void TakeSettings(absl::string_view payload);

  const int socket_;
  std::string out_;
  std::string in_;
  std::map<uint32_t, Pending> bodies_;  // by stream
  std::map<uint32_t, int64_t> windows_;
  int64_t connection_window_ = 65535;
  int64_t first_window_ = 65535;
  uint32_t next_stream_ = 1;
  int64_t answered_ = 0;
  int64_t ended_ = 0;
  std::string answer_;
  uint32_t answered_stream_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_HTTP2_CONNECTION_H_
