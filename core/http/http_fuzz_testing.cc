#include "core/http/http_fuzz_testing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace keelson {
namespace {

using std::string_literals::operator""s;

const std::vector<std::string>& NastyTexts() {
  static const auto* const kTexts = new std::vector<std::string>{
      // Other places of the file system.
      "..", ".", "../..", "../../../../etc/passwd", "/etc/passwd", "..\\..\\windows", "....//",
      "%2e%2e%2f", "%252e%252e%252f", "..%2f..%2fetc%2fpasswd", "..;/", "~", "file:///etc/passwd",
      "\xc0\xae\xc0\xae/", "%c0%ae", "model.ckpt-1.index", ".tmp", "a/../../b",
      // Numbers.
      "0", "-1", "+1", "01", "1.5", "1e9", "1e999", "-1e999", "nan", "inf", "-inf", "0x10", "1_000",
      "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616",
      "99999999999999999999999999", "1 ", " 1", "1,2", "١",
      // Text.
      "", " ", "null", "true", "[]", "{}", "\"", "'", "' or 1=1 --", "<script>alert(1)</script>",
      "\"><img src=x onerror=alert(1)>", "a\r\nSet-Cookie: a=b", "a\nb", "\0"s, "a\0b"s, "\x7f",
      "\xff\xfe", "\xed\xa0\x80", "\xf0\x9f\x98\x80", "ü", "%", "%%", "%zz", "%u0041", "$(id)",
      "`id`", "${jndi:ldap://a}", "{{7*7}}", "*", "?", "#", "&", "=", ";", ":"};
  return *kTexts;
}

const std::vector<std::string>& NastyBodies() {
  static const auto* const kBodies =
      new std::vector<std::string>{"",
                                   "{",
                                   "[",
                                   "nul",
                                   "{}",
                                   "[]",
                                   "null",
                                   "0",
                                   "\"text\"",
                                   "{\"features\": null}",
                                   "{\"features\": {}}",
                                   "{\"features\": [[]]}",
                                   "{\"features\": [null]}",
                                   "{\"features\": [\"1\"]}",
                                   "{\"features\": [1e999]}",
                                   "{\"features\": [NaN]}",
                                   "{\"features\": [1, 2, ]}",
                                   "{\"features\": []}",
                                   "{\"features\": [1], \"features\": [2]}",
                                   "{\"Features\": [1]}",
                                   "{\"reason\": 1}",
                                   "{\"reason\": \"\\u0000\"}",
                                   "{\"reason\": \"\\ud800\"}",
                                   "{\"reason\": \"\xff\"}",
                                   "{\"mode\": \"ssp:-1\"}",
                                   "{\"mode\": \"sync:99999999999999999999/0\"}",
                                   "{\"mode\": [\"async\"]}",
                                   "{\"a\": 1}{\"b\": 2}",
                                   "\xef\xbb\xbf{}",
                                   "<xml/>",
                                   "features=1&features=2"};
  return *kBodies;
}

std::string Repeat(const std::string& text, size_t times) {
  std::string repeated;
  repeated.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

std::string Escape(absl::string_view text, absl::string_view kept) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains(kept, c)) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", byte);
    }
  }
  return escaped;
}

}  // namespace

NastyRequests::NastyRequests(uint64_t seed, std::vector<HttpSample> samples)
    : samples_(std::move(samples)), random_(seed) {}

HttpRequest NastyRequests::Next() {
  const HttpSample& sample = samples_[Choose(samples_.size())];
  HttpRequest request;
  request.method = sample.method;
  request.path = sample.path;
  request.query = sample.query;
  request.body = sample.body;
  request.client = "192.0.2.1";
  if (!sample.body.empty()) request.headers["content-type"] = kJson;
  for (size_t spoilt = 0, count = 1 + Choose(3); spoilt < count; ++spoilt) {
    switch (Choose(4)) {
      case 0:
        SpoilPath(&request);
        break;
      case 1:
        SpoilQuery(&request);
        break;
      case 2:
        request.body = NastyBody(request.body);
        break;
      default:
        SpoilRest(&request);
        break;
    }
  }
  return request;
}

// Not std::uniform_int_distribution, whose numbers depend on the library.
size_t NastyRequests::Choose(size_t count) { return random_() % count; }

std::string NastyRequests::RandomBytes() {
  std::string bytes(Choose(40), '\0');
  for (char& byte : bytes) byte = static_cast<char>(Choose(256));
  return bytes;
}

std::string NastyRequests::NastyText() {
  switch (Choose(12)) {
    case 0:
      return RandomBytes();
    case 1:
      return Repeat(NastyTexts()[Choose(NastyTexts().size())], 1 + Choose(300));
    case 2:
      return std::string(1 + Choose(5000), 'a');
    case 3:
      return absl::StrCat(static_cast<int64_t>(random_()));
    default:
      return NastyTexts()[Choose(NastyTexts().size())];
  }
}

std::string NastyRequests::NastyBody(const std::string& good) {
  switch (Choose(8)) {
    case 0:
      return RandomBytes();
    case 1:  // deep
      return Repeat(Choose(2) == 0 ? "[" : "{\"a\":", 1 + Choose(20000));
    case 2:  // long
      return absl::StrCat("{\"features\": [", Repeat("1,", Choose(20000)), "1]}");
    case 3:
      return absl::StrCat("{\"reason\": \"", std::string(Choose(20000), 'a'), "\"}");
    case 4:  // cut off
      return good.substr(0, Choose(good.size() + 1));
    case 5: {  // one byte is another
      std::string body = good;
      if (!body.empty()) body[Choose(body.size())] = static_cast<char>(Choose(256));
      return body;
    }
    default:
      return NastyBodies()[Choose(NastyBodies().size())];
  }
}

void NastyRequests::SpoilPath(HttpRequest* request) {
  std::vector<std::string> parts = absl::StrSplit(request->path, '/');
  const size_t place = 1 + Choose(std::max<size_t>(parts.size(), 2) - 1);
  parts.resize(std::max(parts.size(), place + 1));
  switch (Choose(4)) {
    case 0:
      parts.insert(parts.begin() + static_cast<int64_t>(place), NastyText());
      break;
    case 1:
      parts.erase(parts.begin() + static_cast<int64_t>(place));
      break;
    case 2:
      parts[place] += NastyText();
      break;
    default:
      parts[place] = NastyText();
      break;
  }
  request->path = absl::StrJoin(parts, "/");
  // The server lets no control characters into a path, and it begins with '/'.
  request->path.erase(
      std::remove_if(request->path.begin(), request->path.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }),
      request->path.end());
  if (request->path.empty() || request->path[0] != '/') request->path.insert(0, 1, '/');
}

void NastyRequests::SpoilQuery(HttpRequest* request) {
  auto* const query = &request->query;
  if (query->empty() || Choose(4) == 0) {
    // A parameter of this sample or of another one, or an unknown one.
    const HttpSample& sample = samples_[Choose(samples_.size())];
    std::string name =
        sample.query.empty() ? NastyText() : sample.query[Choose(sample.query.size())].first;
    query->emplace_back(std::move(name), NastyText());
    return;
  }
  const size_t place = Choose(query->size());
  switch (Choose(4)) {
    case 0:
      query->erase(query->begin() + static_cast<int64_t>(place));
      break;
    case 1: {
      const std::pair<std::string, std::string> repeated = (*query)[place];
      query->insert(query->end(), Choose(200), repeated);
      break;
    }
    default:
      (*query)[place].second = NastyText();
      break;
  }
}

void NastyRequests::SpoilRest(HttpRequest* request) {
  static constexpr const char* kMethods[] = {"GET", "HEAD", "POST"};
  static constexpr const char* kHeaders[] = {"content-type",  "authorization", "accept-encoding",
                                             "if-none-match", "host",          "origin"};
  if (Choose(2) == 0) {
    request->method = kMethods[Choose(std::size(kMethods))];
  } else {
    const std::string value = NastyText();
    request->headers[kHeaders[Choose(std::size(kHeaders))]] =
        Choose(2) == 0 ? value : absl::StrCat("Bearer ", value);
  }
}

std::string RequestBytes(const HttpRequest& request) {
  std::string bytes = absl::StrCat(request.method, " ", Escape(request.path, "/-._~"));
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    bytes.push_back(std::exchange(separator, '&'));
    absl::StrAppend(&bytes, Escape(name, "-._~"), "=", Escape(value, "-._~"));
  }
  absl::StrAppend(&bytes, " HTTP/1.1\r\n");
  for (const auto& [name, value] : request.headers) {
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  }
  if (!request.body.empty()) {
    absl::StrAppend(&bytes, "Content-Length: ", request.body.size(), "\r\n");
  }
  return absl::StrCat(bytes, "\r\n", request.body);
}

}  // namespace keelson
