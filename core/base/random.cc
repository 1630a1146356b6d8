#include "core/base/random.h"

#include <random>

#include "core/base/scheduler.h"

namespace keelson {

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t stream, uint64_t counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kMultiplier0 * x[0], p1 = kMultiplier1 * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return x;
}

uint64_t StableHash(absl::string_view text, uint64_t seed) {
  uint64_t hash = seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

uint64_t RandomId() {
  if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Random();
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace keelson
