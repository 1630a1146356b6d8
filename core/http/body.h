// A request's body: how its headers frame it, and its bytes.
#ifndef KEELSON_CORE_HTTP_BODY_H_
#define KEELSON_CORE_HTTP_BODY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// All values of the headers that say how a body is sent.
struct BodyHeaders {
  std::vector<std::string> content_length;
  std::vector<std::string> transfer_encoding;
};

struct BodyFraming {
  bool chunked = false;
  int64_t length = 0;  // where it is not chunked
};

// Returns an HTTP status: 200, or the one with which the request must be refused. 400: lengths that
// are no number, differ, or stand beside a transfer coding; 413: longer than `max_bytes`; 501:
// another coding than chunked.
int FrameBody(const BodyHeaders& headers, int64_t max_bytes, BodyFraming* framing);

// Reads a body from its bytes, in pieces as they arrive. For one thread.
class BodyReader {
 public:
  BodyReader(const BodyFraming& framing, int64_t max_bytes);

  // Takes the next bytes; those beyond the body's end are dropped.
  void Add(absl::string_view bytes);

  // Whether no more bytes are needed.
  bool ended() const { return ended_; }
  // An HTTP status: 200 for a whole body; 400: it has not ended, or its chunks make no sense; 413:
  // its chunks are longer than `max_bytes` in all.
  int status() const { return status_; }
  // What has been read, without the framing.
  std::string& bytes() { return bytes_; }

 private:
  // What comes next.
  enum class Part { kSize, kData, kDataEnd, kTrailer };

  // Take some of `bytes` away.
  void AddData(absl::string_view* bytes);
  void AddToLine(absl::string_view* bytes);
  // `line` is without its end.
  void EndLine(absl::string_view line);
  void BeginChunk(absl::string_view line);
  void EndTrailer(absl::string_view line);
  void End(int status);

  const bool chunked_;
  const int64_t max_bytes_;
  bool ended_ = false;
  int status_ = 400;
  Part part_;
  int64_t left_;  // of the data: of the body, or of the chunk
  std::string line_;
  int trailers_ = 0;
  std::string bytes_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_BODY_H_
