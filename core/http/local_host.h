// Checks that a request to a server on a loopback address was meant for this machine.
#ifndef KEELSON_CORE_HTTP_LOCAL_HOST_H_
#define KEELSON_CORE_HTTP_LOCAL_HOST_H_

#include "absl/strings/string_view.h"

namespace keelson {

// Whether the value of a Host header names this machine: localhost, 127.x.y.z or [::1], with or
// without a port. A foreign page whose name resolves to 127.0.0.1 (DNS rebinding) sends its own
// name.
bool IsLocalHost(absl::string_view host);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_LOCAL_HOST_H_
