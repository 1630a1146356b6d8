// libFuzzer program for what clients send to an HttpServer. An input's first byte chooses how many
// bytes are read at a time and whether requests may have a body; the others are the connection's.

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/exchange.h"
#include "core/http/http_fuzz_testing.h"
#include "core/http/request_reader.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

constexpr int64_t kMaxBodyBytes = 1000;

// Gives the reader the bytes in pieces of `step`; 0: all at once.
void AddInPieces(absl::string_view bytes, size_t step, RequestReader* reader) {
  if (step == 0) step = bytes.size();
  while (!bytes.empty()) {
    reader->Add(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
}

void CheckRequest(const HttpRequest& request, int64_t max_body_bytes) {
  Check(request.method == "GET" || request.method == "HEAD" ||
            (request.method == "POST" && max_body_bytes > 0),
        "only methods that are allowed reach the handler");
  Check(absl::StartsWith(request.path, "/"), "paths begin with /");
  Check(std::none_of(request.path.begin(), request.path.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
        "paths have no control characters");
  Check(static_cast<int64_t>(request.body.size()) <= max_body_bytes, "bodies are bounded");
  size_t head = request.path.size();
  for (const auto& [name, value] : request.query) {
    head += name.size() + value.size();
  }
  Check(head <= kMaxHeadBytes, "heads are bounded");
}

// What it writes, and what the handler was asked.
std::pair<std::string, std::string> Serve(absl::string_view bytes, size_t step,
                                          int64_t max_body_bytes) {
  RequestReader reader(max_body_bytes);
  AddInPieces(bytes, step, &reader);
  const bool whole = reader.whole();
  int calls = 0;
  std::string asked;
  const Exchange exchange =
      ServeRequest(reader.Take(), "192.0.2.1", max_body_bytes, [&](const HttpRequest& request) {
        ++calls;
        CheckRequest(request, max_body_bytes);
        asked = RequestBytes(request);
        // The handler's answer has whatever the client sent.
        HttpResponse response = JsonError(404, request.path);
        response.headers.emplace_back("X-Path", request.Parameter("name").value_or(request.body));
        return response;
      });
  Check(calls <= 1, "the handler is asked once at most");
  Check(calls == 0 || whole, "requests are complete when the handler is asked");
  const std::string& written = exchange.answer;
  Check(written.empty() || absl::StartsWith(written, "HTTP/1.1 "), "answers are HTTP");
  Check(calls == 0 || absl::StrContains(written, "HTTP/1.1 404 "), "the handler's answer is sent");
  return {written, asked};
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const char* request :
       {"GET /a%20b?x=1&x=%zz&y HTTP/1.1\r\nHost: here\r\nAccept-Encoding: gzip\r\n\r\n",
        "HEAD / HTTP/1.0\r\nRange: bytes=0-1\r\n\r\n",
        "POST /p HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
        "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nT: x\r\n\r\n"}) {
    seeds.push_back(absl::StrCat("\3", request));
  }
  NastyRequests nasty(1, {{"GET", "/api/v1/runs/a/series/data", {{"name", "b"}}, ""},
                          {"POST", "/api/v1/runs/a/predict", {}, "{\"features\": [1]}"}});
  for (int i = 0; i < 50; ++i) seeds.push_back(absl::StrCat("\1", RequestBytes(nasty.Next())));
  return seeds;
}

}  // namespace
}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const int64_t max_body_bytes = data[0] % 2 == 1 ? keelson::kMaxBodyBytes : 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = keelson::Serve(bytes, 0, max_body_bytes);
  const auto pieces = keelson::Serve(bytes, data[0] / 2, max_body_bytes);
  keelson::Check(whole == pieces, "how the bytes arrive makes no difference");
  return 0;
}
