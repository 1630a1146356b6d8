// The bytes that a caller of a gRPC server sends: HTTP/2 frames, whether they make sense or not.
#ifndef KEELSON_TESTS_STRANGER_HTTP2_FRAMES_H_
#define KEELSON_TESTS_STRANGER_HTTP2_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 1;  // of DATA and HEADERS
inline constexpr uint8_t kAck = 1;        // of SETTINGS and PING
inline constexpr uint8_t kEndHeaders = 4;
inline constexpr size_t kFrameHeaderBytes = 9;
// What a frame may hold unless its receiver allows more.
inline constexpr size_t kMaxFrameBytes = 16384;

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// What a client's connection begins with: the magic text and empty SETTINGS.
std::string Preface();

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload);

// Big-endian.
std::string NumberBytes(uint32_t number);

// HPACK, each header a literal.
std::string HeaderBlock(const HeaderList& headers);

// HEADERS, and CONTINUATION as often as the block needs it.
std::string HeaderFrames(uint32_t stream, absl::string_view block);

// What begins a call of "/keelson.v1.ParameterService/Pull", with `more` as metadata.
HeaderList CallHeaders(absl::string_view method, const HeaderList& more);

// A gRPC message of these bytes. `claimed`: the length that it says it has.
std::string GrpcMessage(absl::string_view bytes, bool compressed = false,
                        std::optional<uint32_t> claimed = std::nullopt);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_HTTP2_FRAMES_H_
