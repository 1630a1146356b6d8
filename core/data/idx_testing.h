// Writes IDX files, sound and damaged ones, for tests.
#ifndef KEELSON_CORE_DATA_IDX_TESTING_H_
#define KEELSON_CORE_DATA_IDX_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// The content of an IDX file; the header says `dims` whatever `values` holds.
std::string IdxContent(const std::vector<uint32_t>& dims, absl::string_view values);

std::string GzipContent(absl::string_view content);
// One frame, with a checksum.
std::string ZstdContent(absl::string_view content);

void WriteTestFile(const std::string& path, absl::string_view content);

// Writes NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, with ".gz" when `gzip`, of one record
// for each of `labels`. Every pixel of record i is i.
void WriteIdxPair(const std::string& directory, absl::string_view name,
                  const std::vector<uint8_t>& labels, bool gzip, uint32_t side = 2);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_IDX_TESTING_H_
