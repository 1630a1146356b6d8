// Memory that a virtual machine's host gives.
#ifndef KEELSON_BENCH_HOST_MEMORY_H_
#define KEELSON_BENCH_HOST_MEMORY_H_

#include <cstddef>

namespace keelson::bench {

// A virtual machine gets memory from its host when it first uses it, which takes far longer than
// the system's own part. What this has used and freed, the host has given.
void HaveTheHostGiveMemory(size_t bytes);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_HOST_MEMORY_H_
