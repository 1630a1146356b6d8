// Until when a client may take to send or to take bytes.
#ifndef KEELSON_CORE_HTTP_TRANSFER_DEADLINE_H_
#define KEELSON_CORE_HTTP_TRANSFER_DEADLINE_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace keelson {

// One deadline holds for all reads and writes until it is set again: with a timeout for each read,
// a client that sends single bytes would never time out. Each kBytesPerSecond that the client sends
// or takes extends it by a second, so that a transfer may last while it makes progress. For one
// thread.
class TransferDeadline {
 public:
  // The rate below which a client is cut off.
  static constexpr int64_t kBytesPerSecond = 64 * 1024;

  // Does not own the client's socket. `clock` outlives this.
  TransferDeadline(int fd, const Clock* clock) : fd_(fd), clock_(clock) {}

  void Set(absl::Duration from_now);
  // So many bytes were received, or given to the system to send.
  void Count(size_t bytes) { moved_ += static_cast<int64_t>(bytes); }

  // Not positive: it has passed.
  absl::Duration TimeLeft() const;

 private:
  // The number of bytes that the client has sent and taken, from an arbitrary start.
  int64_t Progress() const;

  const int fd_;
  const Clock* const clock_;
  int64_t moved_ = 0;  // bytes read and written
  // The deadline without progress, and the progress when it was set.
  absl::Duration until_;
  int64_t progress_before_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_TRANSFER_DEADLINE_H_
