// libFuzzer program for columnar files. Kinds of input: a file; parts and a directory, which become
// a file whose checksums are right.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file_system_testing.h"
#include "core/data/columnar_file.h"
#include "core/data/columnar_layout.h"
#include "core/data/columnar_records.h"
#include "core/data/columnar_writer.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kParts, kNumKinds };

constexpr char kPath[] = "/records";

const RecordSchema& Schema() {
  static const RecordSchema schema = {{{"numbers", Shape({2})},
                                       {"id", {}, FeatureKind::kId, false, 1000},
                                       {"bag", {}, FeatureKind::kBag},
                                       {"weighted", {}, FeatureKind::kBag, true}},
                                      {{"label", 2}}};
  return schema;
}

// What the file has, or the schema above: a file need not fit it.
RecordSchema SchemaOf(FileSystem* files) {
  const auto file = ColumnarFile::Open(kPath, files);
  if (!file.ok()) return Schema();
  RecordSchema schema;
  for (const ColumnarFeature& feature : (*file)->layout().features) {
    schema.features.push_back(feature.spec);
  }
  for (const ColumnarLabel& label : (*file)->layout().labels) schema.labels.push_back({label.name});
  return schema.features.empty() ? Schema() : schema;
}

void CheckIsSound(const Batch& batch, int64_t records) {
  Check(batch.size() == records, "a batch has the records that it was asked for");
  for (const FeatureValues& values : batch.features) {
    if (values.offsets.empty()) continue;
    Check(static_cast<size_t>(values.offsets.back()) == values.ids.size(), "offsets fit ids");
  }
}

absl::Status ReadAll(const RecordSchema& schema, FileSystem* files) {
  const auto records = OpenColumnarRecords({kPath}, schema, files);
  if (!records.ok()) return records.status();
  std::vector<int64_t> all((*records)->size());
  std::iota(all.rbegin(), all.rend(), 0);
  Batch batch;
  const absl::Status status = (*records)->Read(all, &batch);
  if (status.ok()) CheckIsSound(batch, (*records)->size());
  return status;
}

void TestFile(const std::string& content) {
  MemoryFileSystem files;
  files.SetContent(kPath, content);
  for (const RecordSchema& schema : {Schema(), SchemaOf(&files)}) {
    const absl::Status status = ReadAll(schema, &files);
    Check(status.ok() || absl::StartsWith(status.message(), kPath), "an error names the file");
    Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
  }
}

// Of the input the first byte says how many of the bytes behind it, times 64, are parts; the others
// are the directory.
std::string FileOfParts(absl::string_view input) {
  std::string content(kColumnarMagic);
  content.resize(kColumnarAlignment);
  size_t parts = input.empty() ? 0 : static_cast<unsigned char>(input.front());
  input.remove_prefix(input.empty() ? 0 : 1);
  parts =
      std::min(parts * kColumnarAlignment, input.size() / kColumnarAlignment * kColumnarAlignment);
  absl::StrAppend(&content, input.substr(0, parts));
  std::string directory(input.substr(parts));
  const ColumnarTrailer trailer = {content.size(), directory.size(), MaskCrc32c(Crc32c(directory))};
  auto layout = DecodeColumnarDirectory(directory, trailer);
  if (layout.ok()) {
    for (ColumnarPart& part : layout->parts) {
      part.crc = MaskCrc32c(Crc32c(absl::string_view(content).substr(part.offset, part.bytes)));
    }
    directory = EncodeColumnarDirectory(*layout);
  }
  return absl::StrCat(content, directory, EncodeColumnarTrailer(content.size(), directory));
}

std::string SomeFile() {
  MemoryFileSystem files;
  const auto writer = ColumnarWriter::Create(kPath, Schema(), &files);
  Check(writer.ok(), "a writer is made");
  Batch batch;
  Resize(2, Schema(), &batch);
  batch.features[0].numbers.span()[0] = batch.features[0].numbers.span()[1] = 0.5f;
  batch.features[0].numbers.span()[2] = batch.features[0].numbers.span()[3] = -1;
  batch.features[1].ids = {7, 999};
  batch.features[2].ids = {~uint64_t{0}};
  batch.features[2].offsets = {0, 1, 1};
  batch.features[3].ids = {3, 4};
  batch.features[3].weights = {1, 2};
  batch.features[3].offsets = {0, 0, 2};
  batch.labels[0].span()[0] = 0;
  batch.labels[0].span()[1] = 1;
  Check((*writer)->Append(batch).ok() && (*writer)->Finish().ok(), "a file is written");
  return files.ReadVersioned(kPath, 1 << 20)->content;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  const std::string file = SomeFile();
  MemoryFileSystem files;
  files.SetContent(kPath, file);
  const auto opened = ColumnarFile::Open(kPath, &files);
  Check(opened.ok(), "the file is one");
  const std::string directory = EncodeColumnarDirectory((*opened)->layout());
  const size_t parts = file.size() - directory.size() - kColumnarTrailerBytes - kColumnarAlignment;
  AddSeeds(kFile, {file, file.substr(0, 100)}, &seeds);
  AddSeeds(kParts,
           {absl::StrCat(std::string(1, static_cast<char>(parts / kColumnarAlignment)),
                         file.substr(kColumnarAlignment, parts), directory)},
           &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  TestFile(kind % kNumKinds == kFile ? std::string(input) : FileOfParts(input));
}

}  // namespace keelson
