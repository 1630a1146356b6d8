// Memory for the rows and indices of embedding tables: blocks of pages within large aligned regions
// for which the kernel is asked for huge pages, since every row of a batch lies on another page.
#ifndef KEELSON_CORE_TABLE_ROW_MEMORY_H_
#define KEELSON_CORE_TABLE_ROW_MEMORY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace keelson {

// Shared by the tables of a process; it outlives them. Thread-safe. What is freed goes back to the
// system as soon as a whole huge page is free.
class RowMemory {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kRegion = size_t{32} << 20;

  // Gives out `max_bytes` at most.
  explicit RowMemory(size_t max_bytes = std::numeric_limits<size_t>::max())
      : max_bytes_(max_bytes) {}
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;
  ~RowMemory();

  // `bytes` > 0, aligned to 64, uninitialised; null when the system has no more, or that would be
  // more than `max_bytes`. Multiples of kPage come from the regions, others from malloc.
  void* Allocate(size_t bytes);
  // `bytes` as it was allocated.
  void Free(void* memory, size_t bytes);

  // What has been given out.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Address space of the regions, whether it is used or not.
  size_t region_bytes() const;

 private:
  static constexpr size_t kPages = kRegion / kPage;
  static constexpr size_t kPagesPerHugePage = kHugePage / kPage;

  struct Region {
    std::array<uint64_t, kPages / 64> used = {};  // a bit for each page
    std::array<uint16_t, kRegion / kHugePage> used_of_huge_page = {};
    size_t free_pages = kPages;
    // No run of free pages is longer.
    size_t longest_run = kPages;
  };

  void* AllocateUncounted(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void* AllocatePages(size_t pages) ABSL_LOCKS_EXCLUDED(mu_);
  void FreePages(uintptr_t address, size_t pages) ABSL_LOCKS_EXCLUDED(mu_);
  // The first page of a run of free ones; kPages: there is none, and longest_run says so.
  static size_t FindRun(size_t pages, Region* region);
  static void Mark(size_t first, size_t pages, bool used, Region* region);

  const size_t max_bytes_;
  std::atomic<size_t> bytes_{0};

  mutable Mutex mu_;
  std::map<uintptr_t, Region> regions_ ABSL_GUARDED_BY(mu_);  // by address
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_MEMORY_H_
