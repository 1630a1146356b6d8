// Shared code of the libFuzzer programs.
#ifndef KEELSON_TESTS_FUZZ_FUZZING_H_
#define KEELSON_TESTS_FUZZ_FUZZING_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/wire/byte_rope.h"

namespace keelson {

inline void Check(bool holds, const char* invariant) {
  if (holds) return;
  std::cerr << "violated: " << invariant << "\n";
  std::abort();
}

// Fragments of `step`, `step` + 1, ... bytes, each in memory of its own, so that the address
// sanitizer sees what reads beyond it; 0: one fragment.
inline ByteRope Cut(absl::string_view bytes, size_t step) {
  ByteRope rope;
  while (!bytes.empty()) {
    const absl::string_view piece = step == 0 ? bytes : bytes.substr(0, step++);
    rope.AppendOwned(std::string(piece));
    bytes.remove_prefix(piece.size());
  }
  return rope;
}

// Inputs to start from go into those of a fuzzer's corpus directories that are empty.
inline void WriteSeeds(int argc, char** argv, const std::vector<std::string>& seeds) {
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path directory = argv[i];
    if (!std::filesystem::is_directory(directory) || !std::filesystem::is_empty(directory))
      continue;
    for (size_t seed = 0; seed < seeds.size(); ++seed) {
      std::ofstream(directory / ("seed" + std::to_string(seed)), std::ios::binary) << seeds[seed];
    }
  }
}

}  // namespace keelson

#endif  // KEELSON_TESTS_FUZZ_FUZZING_H_
