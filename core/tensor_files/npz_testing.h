// Zip archives for tests, whether libzip would write them or not.
#ifndef KEELSON_CORE_TENSOR_FILES_NPZ_TESTING_H_
#define KEELSON_CORE_TENSOR_FILES_NPZ_TESTING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// An archive with one member, stored or deflated. It says that the member has `claimed_bytes`
// instead of its true size, if that is given.
std::string ZipArchive(const std::string& name, absl::string_view member, bool compressed,
                       std::optional<uint32_t> claimed_bytes = std::nullopt);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_NPZ_TESTING_H_
