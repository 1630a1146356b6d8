// AnswerAsset of dashboard.h.
#include <zlib.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/crc32c.h"
#include "dashboard/dashboard.h"

namespace keelson {
namespace {

constexpr size_t kInflateChunk = size_t{1} << 16;
constexpr int kGzipWindow = 15 + 16;

// "gzip", "br, gzip;q=0.5", "*"; not "gzip;q=0".
bool TakesGzip(const std::string& accept_encoding) {
  for (const absl::string_view item : absl::StrSplit(accept_encoding, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, ';');
    const absl::string_view coding = absl::StripAsciiWhitespace(parts[0]);
    if (!absl::EqualsIgnoreCase(coding, "gzip") && coding != "*") continue;
    double quality = 1;
    for (size_t i = 1; i < parts.size(); ++i) {
      const absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
      if (!absl::StartsWithIgnoreCase(parameter, "q=")) continue;
      if (!absl::SimpleAtod(parameter.substr(2), &quality)) quality = 0;
    }
    return quality > 0;
  }
  return false;
}

// The unpacked bytes; nullopt: `bytes` are not gzip.
std::optional<std::string> Unpack(const std::string& bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t size = out.size();
    out.resize(size + kInflateChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream.avail_out = static_cast<uInt>(kInflateChunk);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return out;
}

// Weak: the same for the packed and the unpacked form.
std::string TagOf(const Asset& asset) {
  return absl::StrFormat("W/\"%08x-%x\"", Crc32c(asset.bytes), asset.bytes.size());
}

// The files that the page loads are named after their content.
std::string CacheControl(const std::string& path) {
  return absl::StartsWith(path, "/assets/") ? "max-age=31536000, immutable" : "no-cache";
}

bool Matches(const std::string& if_none_match, const std::string& tag) {
  for (const absl::string_view item : absl::StrSplit(if_none_match, ',')) {
    const absl::string_view given = absl::StripAsciiWhitespace(item);
    if (given == "*" || given == tag) return true;
  }
  return false;
}

}  // namespace

HttpResponse AnswerAsset(const HttpRequest& request, const Asset& asset) {
  HttpResponse response;
  const std::string tag = TagOf(asset);
  response.content_type = asset.content_type;
  response.headers = {
      {"ETag", tag}, {"Cache-Control", CacheControl(request.path)}, {"Vary", "Accept-Encoding"}};
  if (Matches(request.Header("if-none-match"), tag)) {
    response.status = 304;
    return response;
  }
  if (!asset.gzipped) {
    response.body = asset.bytes;
  } else if (TakesGzip(request.Header("accept-encoding"))) {
    response.body = asset.bytes;
    response.headers.emplace_back("Content-Encoding", "gzip");
  } else {
    std::optional<std::string> unpacked = Unpack(asset.bytes);
    if (!unpacked.has_value()) return JsonError(404, "the page in this program is damaged");
    response.body = *std::move(unpacked);
  }
  return response;
}

}  // namespace keelson
