#include "bench/host_memory.h"

#include <sys/mman.h>

namespace keelson::bench {

void HaveTheHostGiveMemory(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  munmap(memory, bytes);
}

}  // namespace keelson::bench
