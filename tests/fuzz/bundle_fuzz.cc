// libFuzzer program for a snapshot's index and its string tensors. Kinds of input: an index file;
// the content of its one block of entries, plain or compressed by snappy; that of its index of
// blocks; records of an index, each after the lengths of its key and value (a byte each); a string
// tensor after the number of its strings.

#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/ordered_code.h"
#include "core/checkpoint/string_tensor.h"
#include "keelson/v1/checkpoint.pb.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kEntries, kCompressed, kBlocks, kRecords, kStrings, kNumKinds };

constexpr char kPath[] = "/m.index";

void TestContents(const IndexTable& table) {
  const absl::StatusOr<BundleContents> contents = ParseBundleContents(table);
  if (!contents.ok()) return;
  uint64_t held = 0, stored = 0;
  for (const uint64_t size : contents->data_sizes) held += size;
  for (const auto& [name, tensor] : contents->tensors) {
    int64_t elements = 0;
    for (const StoredSlice& slice : tensor.slices) {
      Check(slice.data_shard < contents->data_sizes.size(), "slices are in data files that exist");
      Check(slice.offset + slice.size <= contents->data_sizes[slice.data_shard],
            "slices end within their data file");
      stored += slice.size;
      elements += SliceShape(slice.position).num_elements();
    }
    Check(elements == tensor.shape.num_elements(), "slices cover their tensor");
  }
  Check(stored <= held, "no byte belongs to two slices");
}

void TestTable(const std::string& file) {
  MemoryFileSystem file_system;
  file_system.SetContent(kPath, file);
  const absl::StatusOr<IndexTable> table = ReadIndexTable(&file_system, kPath);
  if (!table.ok()) {
    Check(table.status().code() == absl::StatusCode::kDataLoss, "damage is DATA_LOSS");
    return;
  }
  size_t bytes = 0;
  for (const auto& [key, value] : *table) bytes += key.size() + value.size();
  Check(bytes <= std::max<size_t>(16 * file.size(), 1 << 20), "entries are bounded");
  TestContents(*table);
}

void TestStrings(absl::string_view input) {
  if (input.empty()) return;
  const int64_t count = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  const absl::StatusOr<DecodedStrings> decoded = DecodeStringTensor(input, count);
  if (!decoded.ok()) return;
  size_t bytes = 0;
  for (const std::string& text : decoded->strings) bytes += text.size();
  Check(static_cast<int64_t>(decoded->strings.size()) == count && bytes <= input.size(),
        "strings are parts of the entry");
}

IndexTable Records(absl::string_view input) {
  IndexTable table;
  while (input.size() >= 2) {
    const size_t key = static_cast<uint8_t>(input[0]), value = static_cast<uint8_t>(input[1]);
    input.remove_prefix(2);
    const absl::string_view rest = input.substr(std::min(key, input.size()));
    table[std::string(input.substr(0, key))] = std::string(rest.substr(0, value));
    input.remove_prefix(std::min(key + value, input.size()));
  }
  return table;
}

std::string AsInput(const IndexTable& table) {
  std::string input;
  for (const auto& [key, value] : table) {
    input += static_cast<char>(key.size());
    input += static_cast<char>(value.size());
    input += key + value;
  }
  return input;
}

// Two tensors, one of them in two slices.
IndexTable SmallIndex() {
  IndexTable table;
  v1::BundleHeader header;
  header.set_num_shards(2);
  table[kHeaderKey] = header.SerializeAsString();
  v1::BundleEntry whole;
  whole.set_dtype(static_cast<int32_t>(BundleDtype::kFloat32));
  *whole.mutable_shape() = ToProto(Shape({4}));
  whole.set_size(16);
  table["b"] = whole.SerializeAsString();
  const Shape shape({10, 3});
  v1::BundleEntry sliced = whole;
  sliced.set_size(0);
  *sliced.mutable_shape() = ToProto(shape);
  for (const int64_t begin : {0, 5}) {
    const TensorSliceSpec slice = RowSlice(shape, begin, begin + 5);
    *sliced.add_slices() = ToProto(slice);
    v1::BundleEntry stored = whole;
    *stored.mutable_shape() = ToProto(Shape({5, 3}));
    stored.set_size(60);
    stored.set_offset(16);
    stored.set_shard_id(begin == 0 ? 0 : 1);
    table[EncodeSliceKey("w", slice)] = stored.SerializeAsString();
  }
  table["w"] = sliced.SerializeAsString();
  return table;
}

}  // namespace

std::vector<std::string> Seeds() {
  const IndexTable table = SmallIndex();
  const std::string content = TableEntries({table.begin(), table.end()});
  MemoryFileSystem file_system;
  Check(WriteIndexTable(&file_system, kPath, table).ok(), "an index can be written");
  const auto file = file_system.OpenForRead(kPath);
  std::string bytes((*file)->size(), '\0');
  Check((*file)->Read(0, bytes.size(), bytes.data()).ok(), "and read");
  const std::string strings = EncodeStringTensorPrefix(3).bytes + "abc";
  std::vector<std::string> seeds;
  AddSeeds(kFile, {bytes, TableWith({TableBlock(content)}, {TableHandle(0, content.size())})},
           &seeds);
  AddSeeds(kEntries, {content}, &seeds);
  AddSeeds(kCompressed, {std::string("\5\x10hello"), std::string("\x50\0a\xfe\1\0", 6)}, &seeds);
  AddSeeds(kBlocks, {TableEntries({{"a", TableHandle(0, 20)}}), TableEntries({})}, &seeds);
  AddSeeds(kRecords, {AsInput(table)}, &seeds);
  AddSeeds(kStrings, {std::string(1, '\1') + strings, std::string(1, '\0')}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  const google::protobuf::LogSilencer silencer;  // about texts that are not UTF-8
  const std::string bytes(input);
  switch (kind % kNumKinds) {
    case kFile:
      return TestTable(bytes);
    case kEntries:
      return TestTable(TableWith({TableBlock(bytes)}, {TableHandle(0, bytes.size())}));
    case kCompressed:
      return TestTable(TableWith({TableBlock(bytes, 1)}, {TableHandle(0, bytes.size())}));
    case kBlocks: {
      const std::string entries = TableBlock(TableEntries({{"", "header"}, {"w", "entry"}}));
      return TestTable(TableWithIndex({entries}, bytes));
    }
    case kRecords:
      return TestContents(Records(input));
    default:
      return TestStrings(input);
  }
}

}  // namespace keelson
