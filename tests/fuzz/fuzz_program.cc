#include "tests/fuzz/fuzz_program.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

// Removed with its files when the process ends.
class MemoryDirectory {
 public:
  MemoryDirectory() : path_("/dev/shm/keelson_fuzz." + std::to_string(getpid())) {
    std::filesystem::create_directory(path_);
  }
  ~MemoryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

}  // namespace

std::string InputFile(const std::string& name, absl::string_view bytes) {
  static const MemoryDirectory directory;
  const std::string path = directory.path() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  keelson::TestInput(data[0], absl::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
