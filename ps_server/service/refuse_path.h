// Refuses the requests of chiefs of an earlier version, which name a snapshot by its path.
#ifndef KEELSON_PS_SERVER_SERVICE_REFUSE_PATH_H_
#define KEELSON_PS_SERVER_SERVICE_REFUSE_PATH_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace keelson {

// FAILED_PRECONDITION: the request of `call` has the reserved field `field`, in which a path was.
// Without that field it would mean something else.
absl::Status RefusePath(absl::string_view call, const google::protobuf::Message& request,
                        int field);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_REFUSE_PATH_H_
