#include "core/http/body.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

// The longest line with a chunk's size and extensions, or with a trailer.
constexpr size_t kMaxLineBytes = 256;
constexpr int kMaxTrailers = 16;

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Returns 200, or 400 for a body that ends early.
int ReadExactly(int64_t count, HttpStream* stream, std::string* body) {
  char buffer[4096];
  while (count > 0) {
    const size_t wanted = std::min<size_t>(sizeof(buffer), count);
    const size_t read = stream->Read(buffer, wanted);
    if (read == 0) return 400;
    body->append(buffer, read);
    count -= static_cast<int64_t>(read);
  }
  return 200;
}

// Returns a line without its end, "\r\n". nullopt: it has none within kMaxLineBytes.
std::optional<std::string> ReadLine(HttpStream* stream) {
  std::string line;
  char byte = 0;
  while (line.size() < kMaxLineBytes && stream->Read(&byte, 1) == 1) {
    line += byte;
    if (absl::EndsWith(line, "\r\n")) return line.substr(0, line.size() - 2);
  }
  return std::nullopt;
}

// nullopt: it is none.
std::optional<uint64_t> ChunkSize(absl::string_view line) {
  const absl::string_view digits = absl::StripAsciiWhitespace(line.substr(0, line.find(';')));
  uint64_t size = 0;
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) ||
      !absl::SimpleHexAtoi(digits, &size)) {
    return std::nullopt;
  }
  return size;
}

int ReadTrailers(HttpStream* stream) {
  for (int i = 0; i <= kMaxTrailers; ++i) {
    const std::optional<std::string> line = ReadLine(stream);
    if (!line.has_value()) return 400;
    if (line->empty()) return 200;
  }
  return 400;
}

int ReadChunks(int64_t max_bytes, HttpStream* stream, std::string* body) {
  while (true) {
    const std::optional<std::string> line = ReadLine(stream);
    if (!line.has_value()) return 400;
    const std::optional<uint64_t> size = ChunkSize(*line);
    if (!size.has_value()) return 400;
    if (*size == 0) return ReadTrailers(stream);
    if (*size > static_cast<uint64_t>(max_bytes) - body->size()) return 413;
    const int status = ReadExactly(static_cast<int64_t>(*size), stream, body);
    if (status != 200) return status;
    const std::optional<std::string> end = ReadLine(stream);
    if (!end.has_value() || !end->empty()) return 400;
  }
}

}  // namespace

int FrameBody(const BodyHeaders& headers, int64_t max_bytes, BodyFraming* framing) {
  if (!headers.transfer_encoding.empty()) {
    // With both headers, a proxy in between might see another end of the request than this server.
    if (!headers.content_length.empty()) return 400;
    if (headers.transfer_encoding.size() > 1 ||
        !absl::EqualsIgnoreCase(headers.transfer_encoding[0], "chunked")) {
      return 501;
    }
    framing->chunked = true;
    return 200;
  }
  if (headers.content_length.empty()) return 200;
  for (const std::string& length : headers.content_length) {
    if (!IsDigits(length) || length != headers.content_length[0]) return 400;
  }
  if (!absl::SimpleAtoi(headers.content_length[0], &framing->length) ||
      framing->length > max_bytes) {
    return 413;
  }
  return 200;
}

int ReadBody(const BodyFraming& framing, int64_t max_bytes, HttpStream* stream, std::string* body) {
  return framing.chunked ? ReadChunks(max_bytes, stream, body)
                         : ReadExactly(framing.length, stream, body);
}

}  // namespace keelson
