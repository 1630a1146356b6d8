// Counter-based random numbers: a pure function of (key, counter), so that any element of a
// stream can be computed by anyone, in any order.
// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11; Philox-4x32-10.
#ifndef KEELSON_CORE_BASE_RANDOM_H_
#define KEELSON_CORE_BASE_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace keelson {

// 128 random bits for `counter` (high word `stream`) under `key`.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t stream, uint64_t counter);

// Uniform in [0, 1) from 24 bits.
inline float UniformFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// A stable 64-bit hash of a name (FNV-1a), for keys and fingerprints; the same on every machine.
uint64_t StableHash(absl::string_view text, uint64_t seed = 0xcbf29ce484222325ull);

// 64 bits that nobody can guess, from the system's entropy source (std::random_device: the
// processor's generator or the kernel's), or from the Scheduler that runs the thread; for ids.
uint64_t RandomId();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_RANDOM_H_
