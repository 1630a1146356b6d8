#include "core/base/thread_waits.h"

#include <unistd.h>

#include <cstdlib>

namespace keelson {
namespace {

constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
// Some microseconds: longer than threads of one layer are apart.
constexpr char kSpins[] = "1000";

}  // namespace

void BoundSpinning(char** argv) {
  if (getenv(kSpinCount) != nullptr || getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (setenv(kSpinCount, kSpins, /*overwrite=*/1) == 0) execv("/proc/self/exe", argv);
}

}  // namespace keelson
