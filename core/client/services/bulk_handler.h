// What executes the bulk calls of one parameter server: the messages of Pull, Push and PushPull
// (proto/keelson/v1/parameter_service.proto) as bytes.
#ifndef KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_
#define KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_

#include <functional>

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

  // Whether Bulk can answer the request now. False: it is a pull that waits for a step
  // (PullRequest.step), and `wake` is called once, by any thread and with locks held that Bulk may
  // take, when it is worth asking again; the caller may have lost interest by then. Bulk waits for
  // nothing, and answers such a pull OUT_OF_RANGE.
  virtual bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) {
    return true;
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_BULK_HANDLER_H_
