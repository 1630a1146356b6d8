// An array that is read or written message by message, round and round.
#ifndef KEELSON_BENCH_MESSAGE_MEMORY_H_
#define KEELSON_BENCH_MESSAGE_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace keelson::bench {

// Its pages are there from the start.
class MessageMemory {
 public:
  // Holds at least one message.
  MessageMemory(size_t message_bytes, size_t memory_bytes)
      : message_bytes_(message_bytes),
        bytes_(std::max<size_t>(1, memory_bytes / message_bytes) * message_bytes, 1) {}

  size_t message_bytes() const { return message_bytes_; }

  // Where the next message goes.
  char* Next() {
    char* const at = bytes_.data() + offset_;
    offset_ = (offset_ + message_bytes_) % bytes_.size();
    return at;
  }

 private:
  const size_t message_bytes_;
  std::vector<char> bytes_;
  size_t offset_ = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_MESSAGE_MEMORY_H_
