#include "core/table/row_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace keelson {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kBits = 64;  // of a word

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Fresh memory from the system that begins at a multiple of `alignment`; 0: it has none.
uintptr_t MapAligned(size_t bytes, size_t alignment) {
  void* const mapped = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = RoundUp(begin, alignment);
  if (aligned > begin) munmap(mapped, aligned - begin);
  const uintptr_t end = aligned + bytes;
  if (begin + alignment > aligned) {
    munmap(reinterpret_cast<void*>(end), begin + alignment - aligned);
  }
  // A kernel without huge pages refuses, and small ones do, too.
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return aligned;
}

void Unmap(uintptr_t address, size_t bytes) { munmap(reinterpret_cast<void*>(address), bytes); }

}  // namespace

RowMemory::~RowMemory() {
  for (const auto& [address, region] : regions_) Unmap(address, kRegion);
}

void* RowMemory::Allocate(size_t bytes) {
  const size_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  void* const memory =
      before > max_bytes_ || bytes > max_bytes_ - before ? nullptr : AllocateUncounted(bytes);
  if (memory == nullptr) bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return memory;
}

void* RowMemory::AllocateUncounted(size_t bytes) {
  if (bytes % kPage != 0) {
    return std::aligned_alloc(kAlignment, RoundUp(bytes, kAlignment));
  }
  if (bytes > kRegion / 2) {
    return reinterpret_cast<void*>(MapAligned(RoundUp(bytes, kHugePage), kHugePage));
  }
  return AllocatePages(bytes / kPage);
}

void RowMemory::Free(void* memory, size_t bytes) {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes % kPage != 0) return std::free(memory);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  if (bytes > kRegion / 2) return Unmap(address, RoundUp(bytes, kHugePage));
  FreePages(address, bytes / kPage);
}

size_t RowMemory::region_bytes() const {
  MutexLock lock(&mu_);
  return regions_.size() * kRegion;
}

size_t RowMemory::FindRun(size_t pages, Region* region) {
  if (region->longest_run < pages || region->free_pages < pages) return kPages;
  size_t run = 0, longest = 0;
  for (size_t word = 0; word < region->used.size(); ++word) {
    const uint64_t used = region->used[word];
    if (used == ~uint64_t{0}) {
      run = 0;
      continue;
    }
    if (used == 0 && run + kBits < pages) {
      run += kBits;
      longest = std::max(longest, run);
      continue;
    }
    for (size_t bit = 0; bit < kBits; ++bit) {
      run = (used >> bit & 1) != 0 ? 0 : run + 1;
      if (run == pages) return word * kBits + bit + 1 - pages;
      longest = std::max(longest, run);
    }
  }
  region->longest_run = longest;
  return kPages;
}

void RowMemory::Mark(size_t first, size_t pages, bool used, Region* region) {
  for (size_t page = first; page < first + pages; ++page) {
    const uint64_t bit = uint64_t{1} << page % kBits;
    uint64_t& word = region->used[page / kBits];
    word = used ? word | bit : word & ~bit;
    region->used_of_huge_page[page / kPagesPerHugePage] += used ? 1 : -1;
  }
  region->free_pages += used ? -pages : pages;
}

void* RowMemory::AllocatePages(size_t pages) {
  MutexLock lock(&mu_);
  for (auto& [address, region] : regions_) {
    const size_t first = FindRun(pages, &region);
    if (first == kPages) continue;
    Mark(first, pages, /*used=*/true, &region);
    return reinterpret_cast<void*>(address + first * kPage);
  }
  const uintptr_t address = MapAligned(kRegion, kRegion);
  if (address == 0) return nullptr;
  Mark(0, pages, /*used=*/true, &regions_[address]);
  return reinterpret_cast<void*>(address);
}

void RowMemory::FreePages(uintptr_t address, size_t pages) {
  MutexLock lock(&mu_);
  const auto found = std::prev(regions_.upper_bound(address));
  Region& region = found->second;
  const size_t first = (address - found->first) / kPage;
  Mark(first, pages, /*used=*/false, &region);
  region.longest_run = region.free_pages;
  if (region.free_pages == kPages) {
    Unmap(found->first, kRegion);
    regions_.erase(found);
    return;
  }
  const size_t last = (first + pages - 1) / kPagesPerHugePage;
  for (size_t huge = first / kPagesPerHugePage; huge <= last; ++huge) {
    if (region.used_of_huge_page[huge] > 0) continue;
    madvise(reinterpret_cast<void*>(found->first + huge * kHugePage), kHugePage, MADV_DONTNEED);
  }
}

}  // namespace keelson
