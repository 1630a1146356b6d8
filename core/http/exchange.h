// One request and its answer, from bytes to bytes.
#ifndef KEELSON_CORE_HTTP_EXCHANGE_H_
#define KEELSON_CORE_HTTP_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/http/body.h"
#include "core/http/message.h"

namespace keelson {

// The longest request line with its headers.
inline constexpr size_t kMaxHeadBytes = 16 * 1024;

// What a request's head says of what follows it.
struct RequestHead {
  // 200, or not: then the request is to be refused, and ServeRequest knows with which status.
  int status = 400;
  BodyFraming framing;
  // "Expect: 100-continue".
  bool expects_continue = false;
};

// `head`: the request line and its headers, with the empty line. `max_body_bytes`: 0: requests have
// no body, and only GET and HEAD are answered.
RequestHead ReadHead(absl::string_view head, int64_t max_body_bytes);

// A request as it was received (RequestReader).
struct ReceivedRequest {
  // Up to and with the empty line; less where the client has sent no more, or more than
  // kMaxHeadBytes.
  std::string head;
  std::string body;
  int body_status = 200;  // BodyReader::status
};

struct Exchange {
  // The answer's bytes; empty: the client has sent nothing.
  std::string answer;
  // Not null: `answer` is the answer's head, and this source yields the rest.
  std::shared_ptr<EventSource> events;
};

// Calls the handler with the request and returns the answer. Requests that are refused without the
// handler (see HttpServer) are answered with JsonError. Compresses answers of text for clients that
// accept gzip, unless they have a Content-Encoding already.
//
// `client`: its numeric address. `max_body_bytes`: as ReadHead's. The handler is called once at
// most; what it throws is answered with 500 and logged.
Exchange ServeRequest(ReceivedRequest request, const std::string& client, int64_t max_body_bytes,
                      const std::function<HttpResponse(const HttpRequest&)>& handler);

// The bytes of an answer to a request that is not read. `response` has no events, and its headers
// have no bytes from a client.
std::string UnaskedAnswer(const HttpResponse& response);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_EXCHANGE_H_
