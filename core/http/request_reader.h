// A request's bytes, as they arrive.
#ifndef KEELSON_CORE_HTTP_REQUEST_READER_H_
#define KEELSON_CORE_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/http/body.h"
#include "core/http/exchange.h"

namespace keelson {

// Collects one request and says when nothing more of it is needed, so that a server waits for the
// rest of it without a thread. Holds kMaxHeadBytes and `max_body_bytes` at most. For one thread.
class RequestReader {
 public:
  // `max_body_bytes`: as ServeRequest's.
  explicit RequestReader(int64_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  // Takes the next bytes, of any number; those beyond the request's end are dropped.
  void Add(absl::string_view bytes);
  // No more bytes come: what is missing stays so.
  void End() { ended_ = true; }

  // Whether there was a byte.
  bool begun() const { return !head_.empty(); }
  // Whether the head is whole, and admits a body or none.
  bool has_head() const { return body_.has_value(); }
  // Whether the client waits for "100 Continue" before it sends the body.
  bool awaits_continue() const { return awaits_continue_ && !ended_; }
  // Whether no more bytes are needed: the request is whole, or it is to be refused, or End.
  bool ended() const { return ended_; }
  // Whether it was read to its end. Otherwise the client may still be sending.
  bool whole() const { return whole_; }

  // The request, for ServeRequest; leaves nothing.
  ReceivedRequest Take();

 private:
  // Appends to the head; returns the bytes that follow it.
  absl::string_view AddToHead(absl::string_view bytes);
  // The number of bytes up to the empty line, or to a first line that is none; 0: not yet there.
  size_t FindHeadEnd();
  void AddToBody(absl::string_view bytes);

  const int64_t max_body_bytes_;
  std::string head_;
  size_t line_ = 0;     // where the line begins that has not ended
  size_t scanned_ = 0;  // how far line ends were looked for
  std::optional<BodyReader> body_;
  bool awaits_continue_ = false;
  bool ended_ = false;
  bool whole_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_REQUEST_READER_H_
