// A libFuzzer program for something that is read from a file: it defines these two functions and is
// linked with fuzz_program.cc.
#ifndef KEELSON_TESTS_FUZZ_FUZZ_PROGRAM_H_
#define KEELSON_TESTS_FUZZ_FUZZ_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// Inputs to start from.
std::vector<std::string> Seeds();

// Reads `input`, of which the first byte chooses what the others are.
void TestInput(uint8_t kind, absl::string_view input);

// Inputs of one kind.
inline void AddSeeds(char kind, const std::vector<std::string>& inputs,
                     std::vector<std::string>* seeds) {
  for (const std::string& input : inputs) seeds->push_back(kind + input);
}

// Writes a file that only this process uses, in memory, and returns its path. A later call with the
// same `name` replaces it.
std::string InputFile(const std::string& name, absl::string_view bytes);

}  // namespace keelson

#endif  // KEELSON_TESTS_FUZZ_FUZZ_PROGRAM_H_
