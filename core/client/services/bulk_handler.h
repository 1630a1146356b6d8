// What executes the bulk calls of one parameter server: the messages of Pull, Push and PushPull
// (proto/keelson/v1/parameter_service.proto) as bytes.
#ifndef KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_
#define KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_

#include "absl/status/statusor.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Thread-safe. The server's handler implements it; clients reach it through a BulkTransport.
class BulkHandler {
 public:
  virtual ~BulkHandler() = default;

  // The bytes of a request (EncodeBulkRequest and the payload) for those of the response. The
  // response may reference the server's blocks: drop it soon, because a referenced block is copied
  // at its next update.
  virtual absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_
