// Asks the processor for the cache lines of rows before they are used.
#ifndef KEELSON_CORE_TABLE_ROW_PREFETCH_H_
#define KEELSON_CORE_TABLE_ROW_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace keelson {

enum class RowUse { kRead, kWrite };

// All lines of the row's first `bytes`, but of long rows the first ones alone: the processor finds
// the others. Any pointer may be passed; where there is no memory, nothing happens.
template <RowUse use = RowUse::kRead>
void PrefetchRow(const void* row, size_t bytes) {
  constexpr size_t kLine = 64, kMaxBytes = 8 * kLine;
  const auto begin = reinterpret_cast<uintptr_t>(row);
  const uintptr_t end = begin + std::min(bytes, kMaxBytes);
  for (uintptr_t line = begin / kLine * kLine; line < end; line += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(line), use == RowUse::kWrite ? 1 : 0);
  }
}

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_PREFETCH_H_
