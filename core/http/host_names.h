// Checks that a request was meant for this server, by its Host header: a page from elsewhere whose
// own name is made to resolve to the server's address (DNS rebinding) sends that name.
#ifndef KEELSON_CORE_HTTP_HOST_NAMES_H_
#define KEELSON_CORE_HTTP_HOST_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// Admits every name.
inline constexpr char kAnyHost[] = "*";

// INVALID_ARGUMENT: one of `names` is neither a host's name, without scheme and port, nor
// kAnyHost. `flag` begins the message.
absl::Status CheckHostNames(absl::string_view flag, const std::vector<std::string>& names);

// Whether the value of a Host header names this server, with or without a port: localhost, this
// host's own name, one of `names`, or what no page from elsewhere can have as its name: a numeric
// address, or the name of a Kubernetes Service that ends in .svc or .svc.cluster.local. Upper and
// lower case are the same.
bool AdmitsHost(absl::string_view host, const std::vector<std::string>& names);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_HOST_NAMES_H_
