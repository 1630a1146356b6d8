// "host:port" addresses as users and operators write them.
#ifndef KEELSON_CORE_CLUSTER_ADDRESS_H_
#define KEELSON_CORE_CLUSTER_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// The port of a TFJob replica that names none ("tfjob-port").
inline constexpr int kDefaultPort = 2222;
inline constexpr int kMaxPort = 65535;

struct Address {
  std::string host;  // a name, an IPv4 address, or an IPv6 address in brackets
  int port = 0;      // 1..65535

  // The host is a number or "localhost", so a server can be bound to it before any name service
  // knows it.
  bool is_literal() const;
  std::string ToString() const;
};

// `field` names where the text stands, for the message: "TF_CONFIG: cluster.ps[0]".
// INVALID_ARGUMENT: not host:port, a port outside 1..65535, an IPv6 address without brackets.
absl::StatusOr<Address> ParseAddress(absl::string_view field, absl::string_view text);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_ADDRESS_H_
