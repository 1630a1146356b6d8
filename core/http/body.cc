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

BodyReader::BodyReader(const BodyFraming& framing, int64_t max_bytes)
    : chunked_(framing.chunked),
      max_bytes_(max_bytes),
      part_(framing.chunked ? Part::kSize : Part::kData),
      left_(framing.length) {
  if (!chunked_ && left_ == 0) End(200);
}

void BodyReader::Add(absl::string_view bytes) {
  while (!ended_ && !bytes.empty()) {
    if (part_ == Part::kData) {
      AddData(&bytes);
    } else {
      AddToLine(&bytes);
    }
  }
}

void BodyReader::AddData(absl::string_view* bytes) {
  const absl::string_view data = bytes->substr(0, static_cast<size_t>(left_));
  bytes_.append(data.data(), data.size());
  bytes->remove_prefix(data.size());
  left_ -= static_cast<int64_t>(data.size());
  if (left_ > 0) return;
  part_ = Part::kDataEnd;
  if (!chunked_) End(200);
}

void BodyReader::AddToLine(absl::string_view* bytes) {
  line_ += bytes->front();
  bytes->remove_prefix(1);
  if (absl::EndsWith(line_, "\r\n")) {
    EndLine(absl::string_view(line_).substr(0, line_.size() - 2));
    line_.clear();
  } else if (line_.size() >= kMaxLineBytes) {
    End(400);
  }
}

void BodyReader::EndLine(absl::string_view line) {
  switch (part_) {
    case Part::kSize:
      return BeginChunk(line);
    case Part::kDataEnd:
      if (!line.empty()) End(400);
      part_ = Part::kSize;
      return;
    default:
      return EndTrailer(line);
  }
}

void BodyReader::BeginChunk(absl::string_view line) {
  const std::optional<uint64_t> size = ChunkSize(line);
  if (!size.has_value()) return End(400);
  if (*size > static_cast<uint64_t>(max_bytes_) - bytes_.size()) return End(413);
  left_ = static_cast<int64_t>(*size);
  part_ = left_ == 0 ? Part::kTrailer : Part::kData;
}

void BodyReader::EndTrailer(absl::string_view line) {
  if (line.empty()) return End(200);
  if (++trailers_ > kMaxTrailers) End(400);
}

void BodyReader::End(int status) {
  ended_ = true;
  status_ = status;
}

}  // namespace keelson
