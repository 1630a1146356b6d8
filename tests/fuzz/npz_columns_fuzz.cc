// libFuzzer program for the arrays of an npz as columns (npz_fuzz has the archives). Kinds of
// input: an archive; the dimensions and the values of two arrays, of which one may be the other's
// offsets.

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/data/block_records.h"
#include "core/data/npz_blocks.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kArrays, kNumKinds };

std::shared_ptr<const RecordMaker> Maker() {
  v1::DataConfig data;
  data.mutable_npz();
  auto maker =
      RecordMaker::Create(data, {{{"x", {}, FeatureKind::kBag}}, {{"y"}}}, FileSystem::Real());
  Check(maker.ok(), "the configuration is one");
  return *std::move(maker);
}

void TestFile(const std::string& path) {
  const std::shared_ptr<const RecordMaker> maker = Maker();
  absl::Status status;
  auto file = OpenNpzBlocks(path, maker->needed());
  if (file.ok()) {
    std::vector<std::unique_ptr<BlockFile>> files;
    files.push_back(*std::move(file));
    const auto records = OpenBlockRecords(std::move(files), maker, 1 << 30);
    status = records.status();
    if (records.ok() && (*records)->size() > 0) {
      std::vector<int64_t> all((*records)->size());
      std::iota(all.rbegin(), all.rend(), 0);
      Batch batch;
      Check((*records)->Read(all, &batch).ok(), "what is not left out is a record");
      Check(batch.size() == (*records)->size(), "a batch has the records that it was asked for");
    }
  } else {
    status = file.status();
  }
  Check(status.ok() || absl::StrContains(status.message(), path), "an error names the file");
  Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
}

// The first four bytes: how many records and values there are and how many offsets, and whether
// there are any. The others are values, as whole numbers of a byte each.
std::string FileOfArrays(absl::string_view input) {
  const auto next = [&input] {
    const int byte = input.empty() ? 0 : static_cast<int8_t>(input.front());
    input.remove_prefix(input.empty() ? 0 : 1);
    return byte;
  };
  const int records = next() & 15, values = next() & 15, offsets = next() & 15;
  const bool ragged = (next() & 1) == 1;
  const auto add = [&](MemoryTensors* tensors, const std::string& name, int count) {
    std::vector<int8_t> numbers;
    for (int i = 0; i < count; ++i) numbers.push_back(static_cast<int8_t>(next()));
    tensors->AddValues(name, BundleDtype::kInt8, Shape({count}), numbers);
  };
  MemoryTensors tensors;
  if (ragged) add(&tensors, "x_offsets", offsets);
  add(&tensors, "x", values);
  add(&tensors, "y", records);
  const std::string path = InputFile("arrays.npz", "");
  Check(WriteNpz(path, tensors.List(), &tensors).ok(), "an archive is written");
  return path;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  const std::string with_end("\x02\x05\x03\x01\x00\x02\x05\x01\x02\x03\x04\x05\x00\x01", 14);
  const std::string starts("\x02\x05\x02\x01\x00\x02\x01\x02\x03\x04\x05\x00\x01", 13);
  const std::string plain("\x03\x03\x00\x00\x07\x08\x09\x00\x01\x01", 10);
  AddSeeds(kFile, {*ReadFile(FileOfArrays(with_end)), *ReadFile(FileOfArrays(plain))}, &seeds);
  AddSeeds(kArrays, {with_end, starts, plain, starts.substr(0, 6)}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  TestFile(kind % kNumKinds == kFile ? InputFile("columns.npz", input) : FileOfArrays(input));
}

}  // namespace keelson
