#include "core/base/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

absl::Status NoMemory(absl::string_view what, size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("shared memory of ", bytes, " bytes: ", what, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SealedMemory>> SealedMemory::Create(size_t bytes, Touch touch) {
  const int fd = memfd_create("keelson-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return NoMemory("memfd_create", bytes);
  absl::Cleanup close_fd = [fd] { close(fd); };
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return NoMemory("ftruncate", bytes);
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return NoMemory("F_ADD_SEALS", bytes);
  }
  std::move(close_fd).Cancel();
  return Map(fd, bytes, touch);
}

absl::StatusOr<std::unique_ptr<SealedMemory>> SealedMemory::Open(int fd) {
  absl::Cleanup close_fd = [fd] { close(fd); };
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat file = {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &file) != 0 || file.st_size <= 0) {
    return absl::InvalidArgumentError(
        "shared memory: expected a memfd that is sealed against shrinking, found another file");
  }
  std::move(close_fd).Cancel();
  return Map(fd, static_cast<size_t>(file.st_size), Touch::kLater);
}

absl::StatusOr<std::unique_ptr<SealedMemory>> SealedMemory::Map(int fd, size_t bytes, Touch touch) {
  absl::Cleanup close_fd = [fd] { close(fd); };
  const int populate = touch == Touch::kNow ? MAP_POPULATE : 0;
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, fd, 0);
  if (base == MAP_FAILED) return NoMemory("mmap", bytes);
  std::move(close_fd).Cancel();
  return std::unique_ptr<SealedMemory>(new SealedMemory(fd, base, bytes));
}

SealedMemory::~SealedMemory() {
  munmap(base_, bytes_);
  close(fd_);
}

}  // namespace keelson
