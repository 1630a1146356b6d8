// One request and its answer over a connection.
#ifndef KEELSON_CORE_HTTP_EXCHANGE_H_
#define KEELSON_CORE_HTTP_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/http/byte_stream.h"
#include "core/http/message.h"

namespace keelson {

// The longest request line with its headers.
inline constexpr int64_t kMaxHeadBytes = 16 * 1024;

struct Exchange {
  // Not null: the answer's head has been written, and this source yields the rest.
  std::shared_ptr<EventSource> events;
  // The request was read to its end. Otherwise the client may still be sending.
  bool complete = false;
};

// Reads a request from `stream`, calls the handler and writes its answer. Requests that are refused
// without the handler (see HttpServer) are answered with JsonError. Compresses answers of text for
// clients that accept gzip, unless they have a Content-Encoding already. Writes nothing to a client
// that has sent nothing.
//
// `client`: its numeric address. `max_body_bytes`: 0: requests have no body, and only GET and HEAD
// are answered. The handler is called once at most; what it throws is answered with 500 and logged.
Exchange ServeRequest(HttpStream* stream, const std::string& client, int64_t max_body_bytes,
                      const std::function<HttpResponse(const HttpRequest&)>& handler);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_EXCHANGE_H_
