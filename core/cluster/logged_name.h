// The names of the numbers that a script logs (LoggedValue).
#ifndef KEELSON_CORE_CLUSTER_LOGGED_NAME_H_
#define KEELSON_CORE_CLUSTER_LOGGED_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// INVALID_ARGUMENT: it is empty, longer than 100 bytes or no printable UTF-8, or that of a number
// which the chief reports itself: loss, learning_rate, speed/..., exchange/...
absl::Status CheckLoggedName(absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_LOGGED_NAME_H_
