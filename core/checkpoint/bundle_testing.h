// Bundles and damage for tests.
#ifndef KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_
#define KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

// A tensor as it lies in a file. Of type kString: one string.
struct RawTensor {
  std::string name;
  BundleDtype dtype;
  Shape shape;
  std::string bytes;
};

// One data file with these tensors, of any types, each with the checksum that TensorFlow gives it.
void WriteRawBundle(const std::string& prefix, const std::vector<RawTensor>& tensors);

// A block of leveldb's table format with its trailer, valid whatever the content is.
std::string TableBlock(const std::string& content, char compression = 0);

// The content of a block with these entries, each with its whole key.
std::string TableEntries(const std::vector<std::pair<std::string, std::string>>& entries);

// As an entry of the index of blocks names one.
std::string TableHandle(uint64_t offset, uint64_t size);

// A table whose blocks are `blocks`; its index of blocks has an entry for each of `handles`.
// Checksums and footer are valid.
std::string TableWith(const std::vector<std::string>& blocks,
                      const std::vector<std::string>& handles);

// The same, with this content of the index of blocks.
std::string TableWithIndex(const std::vector<std::string>& blocks, const std::string& index);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_BUNDLE_TESTING_H_
