// Whom a request was meant for, as a server on a loopback address asks it.
#ifndef KEELSON_CORE_HTTP_LOCAL_HOST_H_
#define KEELSON_CORE_HTTP_LOCAL_HOST_H_

#include "absl/strings/string_view.h"

namespace keelson {

// Is the value of a Host header this machine itself: localhost, 127.x.y.z or [::1], with any port
// or none? A page from elsewhere whose name was made to mean 127.0.0.1 sends its own name.
bool IsLocalHost(absl::string_view host);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_LOCAL_HOST_H_
