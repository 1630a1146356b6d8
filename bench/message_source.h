// Where the calls of a scenario come from, and where their answers go.
#ifndef KEELSON_BENCH_MESSAGE_SOURCE_H_
#define KEELSON_BENCH_MESSAGE_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/load_client.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson::bench {

// Messages are numbered within a shard and asked for in rounds. Used by one thread.
class MessageSource {
 public:
  virtual ~MessageSource() = default;

  virtual BulkMethod method() const = 0;
  virtual size_t num_messages(size_t shard) const = 0;
  // Payload of a push; 0 for a pull.
  virtual size_t pushed_bytes(size_t shard, size_t message) const = 0;

  // Not before the message's last answer was taken.
  virtual ByteRope Request(size_t shard, size_t message) = 0;
  // Returns the payload's bytes. INTERNAL: it is not what was asked for.
  virtual absl::StatusOr<size_t> Take(size_t shard, size_t message, const ByteRope& response) = 0;
};

// Pushes gradients from one array per variable, encoded as a ParameterClient does.
std::unique_ptr<MessageSource> MakePushSource(const LoadPlan& plan);
// Pulls all values, whatever their version, into one array per variable.
std::unique_ptr<MessageSource> MakePullSource(const LoadPlan& plan);
// 10 million keys of 8 bytes with one float each, divided evenly among the shards, as the payloads
// of pushes of up to scenario.message_bytes: keys, then values. For a server that discards them.
std::unique_ptr<MessageSource> MakeKeyValueSource(const LoadPlan& plan);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_MESSAGE_SOURCE_H_
