#include "core/http/local_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace keelson {
namespace {

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

}  // namespace

bool IsLocalHost(absl::string_view host) {
  // The last colon of "[::1]" does not begin a port.
  const absl::string_view name = WithoutPort(host);
  if (absl::EqualsIgnoreCase(name, "localhost") || name == "[::1]") return true;
  in_addr ip{};
  return inet_pton(AF_INET, std::string(name).c_str(), &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127;
}

}  // namespace keelson
