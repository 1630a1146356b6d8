#include "core/cluster/address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

bool IsIpv4(const std::string& host) {
  in_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

bool IsBracketedIpv6(absl::string_view host) {
  if (!absl::ConsumePrefix(&host, "[") || !absl::ConsumeSuffix(&host, "]")) return false;
  in6_addr ignored;
  return inet_pton(AF_INET6, std::string(host).c_str(), &ignored) == 1;
}

bool IsName(absl::string_view host) {
  for (char c : host) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '_') return false;
  }
  return !host.empty();
}

absl::Status MalformedAddress(absl::string_view field, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": expected \"host:port\" (an IPv6 address in brackets), found \"", text, "\""));
}

absl::Status PortOutOfRange(absl::string_view field, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected a port in 1..65535, found \"", text, "\""));
}

}  // namespace

bool Address::is_literal() const {
  return host == "localhost" || IsIpv4(host) || IsBracketedIpv6(host);
}

std::string Address::ToString() const { return absl::StrCat(host, ":", port); }

absl::StatusOr<Address> ParseAddress(absl::string_view field, absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return MalformedAddress(field, text);
  Address address;
  address.host = std::string(text.substr(0, colon));
  if (!IsName(address.host) && !IsBracketedIpv6(address.host)) return MalformedAddress(field, text);
  const absl::string_view port = text.substr(colon + 1);
  if (port.empty() || port.find_first_not_of("0123456789") != absl::string_view::npos) {
    return MalformedAddress(field, text);
  }
  if (!absl::SimpleAtoi(port, &address.port) || address.port < 1 || address.port > 65535) {
    return PortOutOfRange(field, text);
  }
  return address;
}

}  // namespace keelson
