#include "core/http/host_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/host_name.h"

namespace keelson {
namespace {

// Nobody can register a name of these: the public domain name system has no such domain.
constexpr const char* kServiceDomains[] = {".svc", ".svc.cluster.local"};

// "localhost." is the same host: the dot is the root of all names.
absl::string_view WithoutRoot(absl::string_view name) { return absl::StripSuffix(name, "."); }

// Returns the host without its port; an invalid port stays, so that the result is no valid name.
absl::string_view WithoutPort(absl::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == absl::string_view::npos) return host;
  const absl::string_view port = host.substr(colon + 1);
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return digits ? host.substr(0, colon) : host;
}

// Whether it is a numeric address, of IPv6 in brackets.
bool IsNumeric(absl::string_view name) {
  in6_addr ip{};
  if (absl::ConsumePrefix(&name, "[") && absl::ConsumeSuffix(&name, "]")) {
    return inet_pton(AF_INET6, std::string(name).c_str(), &ip) == 1;
  }
  return inet_pton(AF_INET, std::string(name).c_str(), &ip) == 1;
}

bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

bool IsService(absl::string_view name) {
  const auto is_below = [&](absl::string_view domain) {
    return name.size() > domain.size() && absl::EndsWithIgnoreCase(name, domain);
  };
  return IsName(name) &&
         std::any_of(std::begin(kServiceDomains), std::end(kServiceDomains), is_below);
}

}  // namespace

absl::Status CheckHostNames(absl::string_view flag, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == kAnyHost || IsName(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": expected a host's name such as mnist.example.com, without scheme and port, or ",
        kAnyHost, ", found \"", name, "\""));
  }
  return absl::OkStatus();
}

bool AdmitsHost(absl::string_view host, const std::vector<std::string>& names) {
  // The last colon of "[::1]" does not begin a port.
  const absl::string_view name = WithoutRoot(WithoutPort(host));
  if (absl::EqualsIgnoreCase(name, "localhost") || IsNumeric(name) || IsService(name)) return true;
  const auto is_it = [&](absl::string_view known) {
    return known == kAnyHost || (!name.empty() && absl::EqualsIgnoreCase(name, WithoutRoot(known)));
  };
  return is_it(HostName()) || std::any_of(names.begin(), names.end(), is_it);
}

}  // namespace keelson
