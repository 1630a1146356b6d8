// A server whose answers get lost, for tests of clients.
#ifndef KEELSON_PS_SERVER_SERVICE_LOSSY_SERVER_TESTING_H_
#define KEELSON_PS_SERVER_SERVICE_LOSSY_SERVER_TESTING_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/client/services/bulk_handler.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Executes every call; every second bulk call is answered as if it had been lost.
class LossyServer : public BulkHandler {
 public:
  // `server` outlives this.
  explicit LossyServer(BulkHandler* server) : server_(server) {}

  int lost() const { return lost_; }

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    absl::StatusOr<ByteRope> response = server_->Bulk(method, std::move(request));
    if (++calls_ % 2 == 0) return response;
    ++lost_;
    return absl::UnavailableError("the answer was lost");
  }

 private:
  BulkHandler* const server_;
  std::atomic<int> calls_{0};
  std::atomic<int> lost_{0};
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_LOSSY_SERVER_TESTING_H_
