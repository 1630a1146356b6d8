#include "testing/device/cuda_emulation/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

namespace keelson::cuda_emulation {
namespace {

constexpr size_t kReserved = size_t{64} << 30;
constexpr size_t kPage = 4096;
// The alignment of an allocation's begin; its end is as close to the next page as this allows.
constexpr size_t kAlignment = 256;
constexpr size_t kPatternBytes = size_t{2} << 20;

[[noreturn]] void Fail(const char* call) {
  perror(call);
  abort();
}

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
size_t WholePages(size_t bytes) { return RoundUp(bytes, kPage); }

// The pages of an allocation.
char* FirstPage(char* begin, size_t bytes) {
  return begin - (WholePages(bytes) - RoundUp(bytes, kAlignment));
}

char* Map(void* at, size_t bytes, int flags, int file) {
  void* const mapped =
      mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE | flags, file, /*offset=*/0);
  if (mapped == MAP_FAILED) Fail("mmap");
  return static_cast<char*>(mapped);
}

// A file of NaNs: mapped privately, it gives fresh memory that costs nothing until it is touched.
int PatternFile() {
  static const int file = [] {
    const int created = memfd_create("nan", MFD_CLOEXEC);
    if (created < 0) Fail("memfd_create");
    const std::vector<char> pattern(kPatternBytes, '\xff');
    if (write(created, pattern.data(), pattern.size()) != static_cast<ssize_t>(kPatternBytes)) {
      Fail("write");
    }
    return created;
  }();
  return file;
}

}  // namespace

Arena::Arena() : base_(Map(nullptr, kReserved, MAP_ANONYMOUS, -1)) {}

Arena::~Arena() { munmap(base_, kReserved); }

void* Arena::Allocate(size_t bytes) {
  if (allocations_.empty()) used_ = 0;
  const size_t size = WholePages(bytes);
  if (size > kReserved - used_) return nullptr;
  char* const pages = base_ + used_;
  for (size_t done = 0; done < size; done += kPatternBytes) {
    Map(pages + done, std::min(kPatternBytes, size - done), MAP_FIXED, PatternFile());
  }
  char* const pointer = pages + (size - RoundUp(bytes, kAlignment));
  ASAN_POISON_MEMORY_REGION(pages, size);
  ASAN_UNPOISON_MEMORY_REGION(pointer, bytes);
  // The page between catches what runs on.
  used_ += std::min(size + kPage, kReserved - used_);
  bytes_in_use_ += bytes;
  allocations_[pointer] = bytes;
  return pointer;
}

Arena::Freed Arena::Free(void* pointer) {
  const auto found = allocations_.find(static_cast<char*>(pointer));
  if (found == allocations_.end()) return Freed::kUnknown;
  const auto [begin, bytes] = *found;
  const size_t size = WholePages(bytes);
  char* const pages = FirstPage(begin, bytes);
  ASAN_UNPOISON_MEMORY_REGION(pages, size);
  if (mprotect(pages + size - kPage, kPage, PROT_READ) != 0) Fail("mprotect");
  const bool intact =
      std::all_of(begin + bytes, pages + size, [](char byte) { return byte == '\xff'; });
  Map(pages, size, MAP_FIXED | MAP_ANONYMOUS, -1);
  bytes_in_use_ -= bytes;
  allocations_.erase(found);
  return intact ? Freed::kGood : Freed::kOverrun;
}

bool Arena::Contains(const void* pointer) const {
  const char* const address = static_cast<const char*>(pointer);
  return address >= base_ && address < base_ + kReserved;
}

bool Arena::Holds(const void* pointer, size_t bytes) const {
  char* const address = static_cast<char*>(const_cast<void*>(pointer));
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return false;
  --found;
  const size_t offset = address - found->first;
  return offset <= found->second && bytes <= found->second - offset;
}

void Arena::Open() {
  if (!open_) Protect(PROT_READ | PROT_WRITE);
  open_ = true;
}

void Arena::Close() {
  if (open_) Protect(PROT_NONE);
  open_ = false;
}

void Arena::Protect(int protection) {
  for (const auto& [begin, bytes] : allocations_) {
    if (mprotect(FirstPage(begin, bytes), WholePages(bytes), protection) != 0) Fail("mprotect");
  }
}

}  // namespace keelson::cuda_emulation
