#include "core/checkpoint/bundle_testing.h"

#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/varint.h"
#include "core/checkpoint/string_tensor.h"
#include "gtest/gtest.h"

namespace keelson {

void WriteRawFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string ReadRawFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string Flipped(std::string content, size_t position, int bit) {
  content[position] = static_cast<char>(content[position] ^ (1 << bit));
  return content;
}

std::vector<float> Iota(int64_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::unique_ptr<BundleDataWriter> NewWriter(const std::string& prefix, size_t shard,
                                            size_t num_shards) {
  auto writer =
      BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, shard, num_shards), shard);
  EXPECT_TRUE(writer.ok()) << writer.status();
  return *std::move(writer);
}

void WriteRawBundle(const std::string& prefix, const std::vector<RawTensor>& tensors) {
  std::vector<BundleIndexEntry> entries;
  std::string data;
  for (const RawTensor& tensor : tensors) {
    StringTensorPrefix before{"", 0};
    if (tensor.dtype == BundleDtype::kString)
      before = EncodeStringTensorPrefix(tensor.bytes.size());
    v1::BundleEntry entry;
    entry.set_dtype(static_cast<int32_t>(tensor.dtype));
    for (const int64_t dim : tensor.shape.dims()) entry.mutable_shape()->add_dim()->set_size(dim);
    entry.set_offset(static_cast<int64_t>(data.size()));
    data += before.bytes + tensor.bytes;
    entry.set_size(static_cast<int64_t>(data.size()) - entry.offset());
    entry.set_crc32c(MaskCrc32c(Crc32cExtend(before.crc, tensor.bytes)));
    entries.push_back({tensor.name, std::move(entry)});
  }
  WriteRawFile(DataPath(prefix, 0, 1), data);
  EXPECT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries)).ok());
}

void AppendEntries(BundleDataWriter* writer, std::vector<BundleIndexEntry>* entries) {
  auto part = writer->Finish();
  ASSERT_TRUE(part.ok()) << part.status();
  for (BundleIndexEntry& entry : *part) entries->push_back(std::move(entry));
}

void AddIotaRows(BundleDataWriter* writer, const std::string& name, const Shape& shape,
                 int64_t begin, int64_t end) {
  ASSERT_TRUE(writer->BeginSlice(name, shape, begin, end).ok());
  const int64_t width = shape.row_elements();
  for (int64_t row = begin; row < end; ++row) {
    ASSERT_TRUE(writer->AppendValues(Iota(width, static_cast<float>(row * width))).ok());
  }
  ASSERT_TRUE(writer->EndSlice().ok());
}

void WriteSmallBundle(const std::string& prefix) {
  std::vector<BundleIndexEntry> entries;
  auto first = NewWriter(prefix, 0, 2);
  AddIotaRows(first.get(), "w", Shape({10, 3}), 0, 4);
  ASSERT_TRUE(first->AddInt64("global_step", 100).ok());
  AppendEntries(first.get(), &entries);
  auto second = NewWriter(prefix, 1, 2);
  AddIotaRows(second.get(), "w", Shape({10, 3}), 4, 10);
  ASSERT_TRUE(second->AddTensor("b", Shape({4}), Iota(4)).ok());
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  ASSERT_TRUE(second->AddString("state", bytes).ok());
  AppendEntries(second.get(), &entries);
  const absl::Status status = WriteBundleIndex(FileSystem::Real(), prefix, 2, std::move(entries));
  ASSERT_TRUE(status.ok()) << status;
}

std::string TableBlock(const std::string& content, char compression) {
  std::string block = content + compression;
  const uint32_t crc = MaskCrc32c(Crc32c(block));
  return block.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
}

std::string TableEntries(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string content;
  for (const auto& [key, value] : entries) {
    AppendVarint(0, &content);
    AppendVarint(key.size(), &content);
    AppendVarint(value.size(), &content);
    content += key + value;
  }
  return content + std::string("\0\0\0\0\1\0\0\0", 8);
}

std::string TableHandle(uint64_t offset, uint64_t size) {
  std::string handle;
  AppendVarint(offset, &handle);
  AppendVarint(size, &handle);
  return handle;
}

std::string TableWith(const std::vector<std::string>& blocks,
                      const std::vector<std::string>& handles) {
  std::vector<std::pair<std::string, std::string>> index;
  for (const std::string& handle : handles) {
    index.emplace_back("block" + std::to_string(index.size()), handle);
  }
  return TableWithIndex(blocks, TableEntries(index));
}

std::string TableWithIndex(const std::vector<std::string>& blocks, const std::string& index) {
  constexpr size_t kHandlesBytes = 40;
  constexpr size_t kTrailerBytes = 5;
  std::string table;
  for (const std::string& block : blocks) table += block;
  std::string footer;
  for (const std::string& block : {TableBlock(TableEntries({})), TableBlock(index)}) {
    footer += TableHandle(table.size(), block.size() - kTrailerBytes);
    table += block;
  }
  footer.resize(kHandlesBytes, '\0');
  return table + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

}  // namespace keelson
