#include "core/base/allocator.h"

#include <cstdlib>  // defines __GLIBC__ where it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace keelson {

void TuneAllocator() {
#ifdef __GLIBC__
  // This is the largest mmap threshold that glibc accepts: smaller allocations come from the heap,
  // which keeps them.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
  // Threads share few arenas, since one thread often frees what another one allocated.
  mallopt(M_ARENA_MAX, 2);
#endif
}

}  // namespace keelson
