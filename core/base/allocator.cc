#include "core/base/allocator.h"

#include <cstdlib>  // defines __GLIBC__ where it is

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace keelson {

void TuneAllocator() {
#ifdef __GLIBC__
  // The largest mmap threshold that glibc takes: below it memory comes from the heap and stays.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
  // One thread receives what another one frees.
  mallopt(M_ARENA_MAX, 2);
#endif
}

}  // namespace keelson
