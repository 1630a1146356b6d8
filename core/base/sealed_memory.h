// Memory that two processes share.
#ifndef KEELSON_CORE_BASE_SEALED_MEMORY_H_
#define KEELSON_CORE_BASE_SEALED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace keelson {

// An anonymous file (memfd) that no process can shrink or grow, so that none can be ended by
// reading beyond its end; it is gone with the last process that maps it.
class SealedMemory {
 public:
  enum class Touch {
    kNow,    // The first touch of a page costs more than a step should.
    kLater,  // Most of it may never be needed.
  };

  // All zeros. RESOURCE_EXHAUSTED: there is not enough memory.
  static absl::StatusOr<std::unique_ptr<SealedMemory>> Create(size_t bytes, Touch touch);
  // The memory of another process whose descriptor came along; it is closed in any case.
  // INVALID_ARGUMENT: it can be shrunk, or is empty. RESOURCE_EXHAUSTED: it cannot be mapped.
  static absl::StatusOr<std::unique_ptr<SealedMemory>> Open(int fd);
  ~SealedMemory();
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  int fd() const { return fd_; }
  char* data() const { return static_cast<char*>(base_); }
  size_t bytes() const { return bytes_; }

 private:
  // Takes the descriptor over.
  static absl::StatusOr<std::unique_ptr<SealedMemory>> Map(int fd, size_t bytes, Touch touch);
  SealedMemory(int fd, void* base, size_t bytes) : fd_(fd), base_(base), bytes_(bytes) {}

  const int fd_;
  void* const base_;
  const size_t bytes_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_SEALED_MEMORY_H_
