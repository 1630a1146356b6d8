#include "core/http/message.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace keelson {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The byte that "%41" at `text`'s begin stands for; -1: it stands for none.
int EscapedByte(absl::string_view text) {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = HexDigit(text[1]);
  const int low = HexDigit(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string DecodeQuery(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = EscapedByte(text.substr(i));
    if (byte >= 0) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::optional<std::string> DecodePath(absl::string_view text) {
  if (!absl::StartsWith(text, "/")) return std::nullopt;
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '%') {
      byte = EscapedByte(text.substr(i));
      i += 2;
    }
    if (byte < 0x20 || byte == 0x7f) return std::nullopt;
    decoded += static_cast<char>(byte);
  }
  return decoded;
}

// Bytes of the UTF-8 character at `text`'s begin; 0: it is none (RFC 3629).
size_t CharacterSize(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  // Not the overlong, the surrogates and those beyond U+10FFFF.
  const uint8_t lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) {
      json += "\\ufffd";
    } else if (text[0] == '"' || text[0] == '\\') {
      json.append({'\\', text[0]});
    } else if (absl::ascii_iscntrl(static_cast<unsigned char>(text[0]))) {
      absl::StrAppendFormat(&json, "\\u%04x", text[0]);
    } else {
      json += std::string(text.substr(0, size));
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return json + "\"";
}

}  // namespace

std::optional<std::string> HttpRequest::Parameter(absl::string_view name) const {
  for (const auto& parameter : query) {
    if (parameter.first == name) return parameter.second;
  }
  return std::nullopt;
}

std::vector<std::string> HttpRequest::Parameters(absl::string_view name) const {
  std::vector<std::string> values;
  for (const auto& parameter : query) {
    if (parameter.first == name) values.push_back(parameter.second);
  }
  return values;
}

std::string HttpRequest::Header(absl::string_view name) const {
  const auto found = headers.find(std::string(name));
  return found == headers.end() ? "" : found->second;
}

bool HttpResponse::HasHeader(absl::string_view name) const {
  return std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, name);
  });
}

HttpResponse JsonError(int status, absl::string_view message) {
  HttpResponse response;
  response.status = status;
  response.content_type = kJson;
  response.body = absl::StrCat("{\"error\": ", JsonString(message), "}\n");
  return response;
}

std::optional<HttpTarget> ParseTarget(absl::string_view target) {
  target = target.substr(0, target.find('#'));
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  std::optional<std::string> path = DecodePath(parts.first);
  if (!path.has_value()) return std::nullopt;
  HttpTarget parsed;
  parsed.path = *std::move(path);
  for (const absl::string_view field : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    parsed.query.emplace_back(DecodeQuery(parameter.first), DecodeQuery(parameter.second));
  }
  return parsed;
}

}  // namespace keelson
