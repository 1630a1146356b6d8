// libFuzzer program for lines of libffm. Kinds of input: lines for features of each kind.

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/file_system_testing.h"
#include "core/data/file_records.h"
#include "core/data/libffm_format.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kBags, kIdsAndNumbers, kNumKinds };

constexpr char kPath[] = "/lines";

std::unique_ptr<const RecordFormat> FormatOf(uint8_t kind) {
  const LabelSpec label = {"label", 2};
  if (kind == kBags) {
    return *NewLibffmFormat(
        {}, {{{"field3", {}, FeatureKind::kBag, true, 1000}, {"field0", {}, FeatureKind::kBag}},
             {label}});
  }
  return *NewLibffmFormat(
      {}, {{{"field1", {}, FeatureKind::kId, false, 10}, {"field2", Shape({2})}}, {label}});
}

void CheckIsSound(const Batch& batch, const RecordSchema& schema, int64_t records) {
  Check(batch.size() == records, "a batch has the records that it was asked for");
  for (size_t i = 0; i < batch.features.size(); ++i) {
    const FeatureValues& values = batch.features[i];
    const FeatureSpec& spec = schema.features[i];
    if (spec.kind == FeatureKind::kBag) {
      Check(static_cast<size_t>(values.offsets.back()) == values.ids.size(), "offsets fit ids");
    }
    Check(values.weights.size() == (spec.weighted ? values.ids.size() : 0), "each id has a weight");
    for (const uint64_t id : values.ids) {
      Check(spec.num_ids == 0 || id < static_cast<uint64_t>(spec.num_ids), "ids have rows");
    }
  }
}

absl::Status ReadAll(const FileRecords& records, const RecordSchema& schema) {
  std::vector<int64_t> all(records.size());
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  const absl::Status status = records.Read(all, &batch);
  if (status.ok()) CheckIsSound(batch, schema, records.size());
  return status;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  AddSeeds(kBags, {"1 0:7:1 3:5:0.5 3:999:-1e2\n-1\t9:1:1 # x\r\n", "0 0:1:1 0:1:1\n1 3:x"},
           &seeds);
  AddSeeds(kIdsAndNumbers, {"1 1:7:1 2:1:0.5 2:2:.5\n0 1:0:1\n", "0 2:1:1 1:9:1\n"}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  kind %= kNumKinds;
  MemoryFileSystem files;
  files.SetContent(kPath, std::string(input));
  const RecordSchema schema = FormatOf(kind)->schema();
  const auto tolerant = FileRecords::Open({kPath}, FormatOf(kind), 1 << 30, &files);
  if (tolerant.ok() && (*tolerant)->size() > 0) {
    Check(ReadAll(**tolerant, schema).ok(), "a line that is not left out is a record");
  }
  const auto strict = FileRecords::Open({kPath}, FormatOf(kind), 0, &files);
  const absl::Status status = strict.ok() ? ReadAll(**strict, schema) : strict.status();
  Check(status.ok() || absl::StartsWith(status.message(), kPath), "an error names the file");
  Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
  if (!tolerant.ok() || !status.ok()) return;
  Check((*tolerant)->size() == (*strict)->size(), "a file of records has no bad line");
}

}  // namespace keelson
