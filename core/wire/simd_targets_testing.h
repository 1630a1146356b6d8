// For tests of SIMD code: the instruction sets that were compiled and that this processor has.
#ifndef KEELSON_CORE_WIRE_SIMD_TARGETS_TESTING_H_
#define KEELSON_CORE_WIRE_SIMD_TARGETS_TESTING_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace keelson {

// Calls `body` once for each, with run-time dispatch fixed to it. Not thread-safe.
template <typename Body>
void ForEachInstructionSet(Body body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_SIMD_TARGETS_TESTING_H_
