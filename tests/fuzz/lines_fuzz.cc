// libFuzzer program for text files whose lines are records. Kinds of input: libsvm lines for a
// weighted bag; for numbers; Criteo's click logs; a stored index of a file of 120 bytes.

#include <memory>
#include <numeric>

#include "absl/strings/match.h"
#include "core/base/file_system_testing.h"
#include "core/data/criteo_format.h"
#include "core/data/file_records.h"
#include "core/data/libsvm_format.h"
#include "core/data/record_index.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kBagLines, kNumberLines, kCriteoLines, kIndex, kNumKinds };

constexpr FileVersion kVersion = {120, 7};

std::unique_ptr<const RecordFormat> FormatOf(uint8_t kind) {
  const LabelSpec label = {"label", 2};
  if (kind == kBagLines) {
    return *NewLibsvmFormat({}, {{{"features", {}, FeatureKind::kBag, true, 1000}}, {label}});
  }
  if (kind == kNumberLines) {
    return *NewLibsvmFormat({}, {{{"features", Shape({9})}}, {label}});
  }
  return *NewCriteoFormat({}, {{{"numbers", Shape({kCriteoNumbers})},
                                {"missing", Shape({kCriteoNumbers})},
                                {"c1", {}, FeatureKind::kId},
                                {"c26", {}, FeatureKind::kId, false, 10}},
                               {label}});
}

void CheckIsSound(const Batch& batch, int64_t records) {
  Check(batch.size() == records, "a batch has the records that it was asked for");
  const FeatureValues& first = batch.features.front();
  if (first.offsets.empty()) return;
  Check(static_cast<size_t>(first.offsets.back()) == first.ids.size(), "offsets fit ids");
  Check(first.weights.size() == first.ids.size(), "each id has a weight");
  for (const uint64_t id : first.ids) Check(id < 1000, "an embedding has rows for all ids");
}

absl::Status ReadAll(const FileRecords& records) {
  std::vector<int64_t> all(records.size());
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  const absl::Status status = records.Read(all, &batch);
  if (status.ok()) CheckIsSound(batch, records.size());
  return status;
}

void TestLines(uint8_t kind, absl::string_view content) {
  MemoryFileSystem files;
  files.SetContent("/lines", std::string(content));
  const auto tolerant = FileRecords::Open({"/lines"}, FormatOf(kind), 1 << 30, &files);
  if (tolerant.ok() && (*tolerant)->size() > 0) {
    Check(ReadAll(**tolerant).ok(), "a line that is not left out is a record");
  }
  const auto strict = FileRecords::Open({"/lines"}, FormatOf(kind), 0, &files);
  const absl::Status status = strict.ok() ? ReadAll(**strict) : strict.status();
  Check(status.ok() || absl::StartsWith(status.message(), "/lines"), "an error names the file");
  Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
  if (!tolerant.ok() || !status.ok()) return;
  Check((*tolerant)->size() == (*strict)->size(), "a file of records has no bad line");
}

void TestIndex(absl::string_view bytes) {
  const std::optional<RecordIndex> index = DecodeRecordIndex(bytes, kVersion);
  if (!index.has_value()) return;
  Check(EncodeRecordIndex(*index, kVersion) == bytes, "an index is written as it was read");
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  AddSeeds(kBagLines, {"-1 3:1 6:0.5 17:-2e1\n+1\n1\t0:1  999:1 # x\r\n", "1 5:1 3:1\nx"}, &seeds);
  AddSeeds(kNumberLines, {"0 1:7 9:8\n1 2:.5\n"}, &seeds);
  AddSeeds(kCriteoLines,
           {"1\t5\t\t-1\t4\t5\t6\t7\t8\t9\t10\t11\t12\t1300\t68fd1e64\t" + std::string(24, '\t') +
            "68fd1e64\n0" + std::string(39, '\t')},
           &seeds);
  AddSeeds(kIndex, {EncodeRecordIndex({18, {0, 100, 120}, {3, 16}, 77}, kVersion)}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  kind %= kNumKinds;
  if (kind == kIndex) return TestIndex(input);
  TestLines(kind, input);
}

}  // namespace keelson
