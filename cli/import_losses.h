// What imported numbers lose when they become float32.
#ifndef KEELSON_CLI_IMPORT_LOSSES_H_
#define KEELSON_CLI_IMPORT_LOSSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_format.h"

namespace keelson {

// Elements of a tensor that are worth a warning, counted.
struct ImportLosses {
  int64_t not_finite = 0;
  int64_t became_infinite = 0;
  int64_t rounded_integers = 0;
};

// `bytes` were converted to `values`.
void CountLosses(BundleDtype dtype, const char* bytes, absl::Span<const float> values,
                 ImportLosses* losses);

// Adds a line for each kind that there is: "dense/kernel: 2 of 12 elements are not finite".
void AddWarnings(absl::string_view name, int64_t elements, const ImportLosses& losses,
                 std::vector<std::string>* warnings);

}  // namespace keelson

#endif  // KEELSON_CLI_IMPORT_LOSSES_H_
