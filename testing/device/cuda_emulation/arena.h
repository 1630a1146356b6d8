// The memory of one emulated GPU: addresses that only the GPU's work can use.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_ARENA_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_ARENA_H_

#include <cstddef>
#include <map>

namespace keelson::cuda_emulation {

// Allocations are aligned to 256 bytes. They are full of NaN (every byte 0xff) at first, as are the
// few bytes behind each up to the next multiple of 256; what follows those can never be touched.
// Addresses are not used twice while anything is allocated.
// Not thread-safe.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Null when the addresses are used up.
  void* Allocate(size_t bytes);

  enum class Freed { kGood, kOverrun, kUnknown };
  // kOverrun: the bytes behind the allocation have been written. kUnknown: nothing begins there.
  Freed Free(void* pointer);

  // Whether the address is one of this GPU, allocated or not.
  bool Contains(const void* pointer) const;
  // Whether `bytes` from there on lie within one allocation.
  bool Holds(const void* pointer, size_t bytes) const;

  // Whether the memory can be touched; closed at first.
  void Open();
  void Close();

  size_t bytes_in_use() const { return bytes_in_use_; }
  int allocations() const { return static_cast<int>(allocations_.size()); }

 private:
  void Protect(int protection);

  char* const base_;
  bool open_ = false;
  size_t used_ = 0;  // of the addresses
  size_t bytes_in_use_ = 0;
  std::map<char*, size_t> allocations_;  // to their bytes
};

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_ARENA_H_
