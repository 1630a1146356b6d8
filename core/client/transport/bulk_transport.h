// Bulk calls to all servers of a job, several under way at a time.
#ifndef KEELSON_CORE_CLIENT_TRANSPORT_BULK_TRANSPORT_H_
#define KEELSON_CORE_CLIENT_TRANSPORT_BULK_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/bulk_server.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// The full name of a bulk call: "/keelson.v1.ParameterService/Push".
std::string BulkMethodPath(BulkMethod method);

struct BulkCompletion {
  uint64_t tag = 0;
  // As BulkHandler::Bulk's.
  absl::Status status;
  ByteRope response;  // when `status` is OK
};

// Used by one thread at a time, except Wake. The thread that waits in Next does the input and
// output of all calls, which hardly progress between calls of Next.
class BulkTransport {
 public:
  // Cancels the calls under way and waits for them: all requests are released.
  virtual ~BulkTransport() = default;

  virtual size_t num_shards() const = 0;

  // Starts a call to the server of `shard`; Next returns `tag`, which no other call under way has,
  // when it ends. The transport releases the fragments of `request` before the completion of a call
  // that succeeds; after a failure it may hold them until Reset.
  virtual void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
                     uint64_t tag) = 0;

  // The next call that ended, in any order; nothing after `timeout`, or when another thread called
  // Wake, or at once when nothing is under way and `timeout` is zero.
  virtual std::optional<BulkCompletion> Next(absl::Duration timeout) = 0;

  // Ends a wait in Next, or the next one. Thread-safe.
  virtual void Wake() = 0;

  // Gives up the connections to a shard and makes new ones. Calls under way fail with UNAVAILABLE,
  // and nothing holds their requests after their completion.
  virtual void Reset(size_t shard) = 0;

  // As Reset, and the shard is with this server from now on.
  virtual void Redirect(size_t shard, const BulkServer& server) = 0;
};

// A transport to servers in the same process: a call runs within Start, or, if it is one that waits
// (BulkHandler::MayAnswer), within Next when the wait is over.
class InlineBulkTransport : public BulkTransport {
 public:
  // `shards[s]` serves shard s and outlives the transport. `wake`, if any, is called by the thread
  // that ends a wait, in place of Wake, until the transport is destroyed.
  explicit InlineBulkTransport(std::vector<BulkHandler*> shards,
                               std::function<void()> wake = nullptr);
  ~InlineBulkTransport() override;

  size_t num_shards() const override { return shards_.size(); }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override;
  std::optional<BulkCompletion> Next(absl::Duration timeout) override;
  void Wake() override;
  // The handlers stay; calls that wait end.
  void Reset(size_t shard) override;
  void Redirect(size_t shard, const BulkServer& server) override { Reset(shard); }

 private:
  struct Waiting {
    size_t shard = 0;
    BulkMethod method = BulkMethod::kPull;
    ByteRope request;
    uint64_t tag = 0;
    absl::Duration deadline;  // of the real clock
  };
  // Shared with those who end waits, who may come later than the transport lives.
  struct Waits {
    Mutex mu;
    std::function<void()> wake ABSL_GUARDED_BY(mu);  // null: the transport is gone
    std::vector<uint64_t> over ABSL_GUARDED_BY(mu);  // keys of waiting_
  };

  // Calls the shard, or waits until that is worth it.
  void Try(Waiting call);
  // Those whose wait is over, or has been too long.
  void TryThoseOver();
  // Ends these waits with the status.
  void GiveUp(absl::FunctionRef<bool(const Waiting& call)> which, const absl::Status& status);
  void Complete(uint64_t tag, absl::StatusOr<ByteRope> response);

  const std::vector<BulkHandler*> shards_;
  const std::shared_ptr<Waits> waits_;

  Mutex mu_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  // The caller's.
  uint64_t next_key_ = 0;
  std::map<uint64_t, Waiting> waiting_;
  std::deque<BulkCompletion> completed_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSPORT_BULK_TRANSPORT_H_
