// libFuzzer program for Parquet files; built where Arrow is found. Kinds of input: a file; changes
// to a sound file of Keelson's, each three bytes: a place, and what is added to its byte.

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/data/block_records.h"
#include "core/data/parquet/parquet_blocks.h"
#include "core/data/parquet/parquet_testing.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kChanges, kNumKinds };

// Of WriteTestParquet's columns.
std::shared_ptr<const RecordMaker> Maker() {
  v1::DataConfig data;
  data.mutable_parquet();
  const RecordSchema schema = {
      {{"number", Shape({1})}, {"text", {}, FeatureKind::kBag}, {"list", {}, FeatureKind::kBag}},
      {{"whole"}}};
  auto maker = RecordMaker::Create(data, schema, FileSystem::Real());
  Check(maker.ok(), "the configuration is one");
  return *std::move(maker);
}

void CheckError(const absl::Status& status, const std::string& path) {
  Check(status.ok() || absl::StrContains(status.message(), path), "an error names the file");
  Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
}

// All blocks of the columns that can be read, whatever these are.
absl::Status ReadColumns(const std::string& path) {
  const auto columns = ListParquetColumns(path);
  if (!columns.ok()) return columns.status();
  NeededColumns needed;
  for (const FileColumn& column : *columns) {
    if (!column.unreadable.empty()) continue;
    needed.names.push_back(column.name);
    needed.needed_by.emplace_back("it is there");
  }
  const auto file = OpenParquetBlocks(path, needed);
  if (!file.ok()) return file.status();
  for (size_t i = 0; i < (*file)->block_records().size(); ++i) {
    const auto block = (*file)->Read(i);
    if (!block.ok()) return block.status();
    Check((*block)->columns.size() == needed.names.size(), "a block has all columns");
    for (const BlockColumn& column : (*block)->columns) {
      for (int64_t record = 0; record < (*block)->records; ++record) column.Value(record);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadRecords(const std::string& path) {
  const std::shared_ptr<const RecordMaker> maker = Maker();
  auto file = OpenParquetBlocks(path, maker->needed());
  if (!file.ok()) return file.status();
  std::vector<std::unique_ptr<BlockFile>> files;
  files.push_back(*std::move(file));
  const auto records = OpenBlockRecords(std::move(files), maker, 1 << 30);
  if (!records.ok() || (*records)->size() == 0) return records.status();
  std::vector<int64_t> all((*records)->size());
  std::iota(all.rbegin(), all.rend(), 0);
  Batch batch;
  Check((*records)->Read(all, &batch).ok(), "what is not left out is a record");
  Check(batch.size() == (*records)->size(), "a batch has the records that it was asked for");
  return absl::OkStatus();
}

void TestFile(absl::string_view content) {
  const std::string path = InputFile("input.parquet", content);
  CheckError(ReadColumns(path), path);
  CheckError(ReadRecords(path), path);
}

const std::string& SoundFile() {
  static const std::string content = [] {
    const std::string path = InputFile("sound.parquet", "");
    WriteTestParquet(path);
    return *ReadFile(path);
  }();
  return content;
}

std::string Changed(absl::string_view changes) {
  std::string content = SoundFile();
  for (; changes.size() >= 3; changes.remove_prefix(3)) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(changes[i]); };
    char& changed = content[(byte(0) << 8 | byte(1)) % content.size()];
    changed = static_cast<char>(changed + changes[2]);
  }
  return content;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  AddSeeds(kFile, {SoundFile(), SoundFile().substr(0, 100)}, &seeds);
  AddSeeds(kChanges, {"", std::string("\0\x20\1", 3)}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  TestFile(kind % kNumKinds == kFile ? std::string(input) : Changed(input));
}

}  // namespace keelson
