// A request's body: how its headers frame it, and its bytes.
#ifndef KEELSON_CORE_HTTP_BODY_H_
#define KEELSON_CORE_HTTP_BODY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/http/byte_stream.h"

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

// These return HTTP statuses: 200, or the one with which the request must be refused.

// 400: lengths that are no number, differ, or stand beside a transfer coding; 413: longer than
// `max_bytes`; 501: another coding than chunked.
int FrameBody(const BodyHeaders& headers, int64_t max_bytes, BodyFraming* framing);

// Reads the body that `framing` says. 400: it ends early, or its chunks make no sense; 413: its
// chunks are longer than `max_bytes` in all.
int ReadBody(const BodyFraming& framing, int64_t max_bytes, HttpStream* stream, std::string* body);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_BODY_H_
