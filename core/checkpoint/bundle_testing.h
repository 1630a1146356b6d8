// Bundles and damage for tests.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"

namespace keelson {

// Does not use file.h, because tests write damaged files.
void WriteRawFile(const std::string& path, const std::string& content);

std::string ReadRawFile(const std::string& path);

// `content` with one bit changed.
std::string Flipped(std::string content, size_t position, int bit = 0);

// first, first + 1, …
std::vector<float> Iota(int64_t count, float first = 0);

std::unique_ptr<BundleDataWriter> NewWriter(const std::string& prefix, size_t shard,
                                            size_t num_shards);

void AppendEntries(BundleDataWriter* writer, std::vector<BundleIndexEntry>* entries);

// Rows [begin, end) of a tensor with the values 0, 1, 2, …
void AddIotaRows(BundleDataWriter* writer, const std::string& name, const Shape& shape,
                 int64_t begin, int64_t end);

// Two data files: "w" [10, 3] in rows 0-3 and 4-9 and "b" [4], both 0, 1, 2, …; "global_step" 100;
// "state", a string with all byte values.
void WriteSmallBundle(const std::string& prefix);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_
