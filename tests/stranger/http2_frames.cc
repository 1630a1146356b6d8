#include "tests/stranger/http2_frames.h"

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// An HPACK string without Huffman coding.
std::string HpackString(absl::string_view text) {
  constexpr size_t kPrefix = 127;
  std::string bytes(1, static_cast<char>(text.size() < kPrefix ? text.size() : kPrefix));
  if (text.size() >= kPrefix) {
    size_t rest = text.size() - kPrefix;
    for (; rest >= 128; rest /= 128) bytes += static_cast<char>(rest % 128 | 128);
    bytes += static_cast<char>(rest);
  }
  return absl::StrCat(bytes, text);
}

}  // namespace

std::string NumberBytes(uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  std::string bytes = NumberBytes(static_cast<uint32_t>(payload.size())).substr(1);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  return absl::StrCat(bytes, NumberBytes(stream), payload);
}

std::string Preface() {
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(FrameType::kSettings, 0, 0, ""));
}

std::string HeaderBlock(const HeaderList& headers) {
  std::string block;
  for (const auto& [name, value] : headers) {
    block += '\0';  // a literal without indexing, with a name of its own
    absl::StrAppend(&block, HpackString(name), HpackString(value));
  }
  return block;
}

std::string HeaderFrames(uint32_t stream, absl::string_view block) {
  std::string frames;
  FrameType type = FrameType::kHeaders;
  do {
    const absl::string_view piece = block.substr(0, kMaxFrameBytes);
    block.remove_prefix(piece.size());
    frames += Frame(type, block.empty() ? kEndHeaders : 0, stream, piece);
    type = FrameType::kContinuation;
  } while (!block.empty());
  return frames;
}

HeaderList CallHeaders(absl::string_view method, const HeaderList& more) {
  HeaderList headers = {
      {":method", "POST"},       {":scheme", "http"}, {":path", std::string(method)},
      {":authority", "keelson"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  headers.insert(headers.end(), more.begin(), more.end());
  return headers;
}

std::string GrpcMessage(absl::string_view bytes, bool compressed, std::optional<uint32_t> claimed) {
  const uint32_t length = claimed.value_or(static_cast<uint32_t>(bytes.size()));
  return absl::StrCat(std::string(1, compressed ? '\1' : '\0'), NumberBytes(length), bytes);
}

}  // namespace keelson
