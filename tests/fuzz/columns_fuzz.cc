// libFuzzer program for files whose records have columns. Kinds of input: a CSV file with a header;
// lines of columns with tabs between them; a tf.Example, which is the only record of a TFRecord
// file; a TFRecord file.

#include <array>
#include <list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_system_testing.h"
#include "core/data/csv_format.h"
#include "core/data/csv_line.h"
#include "core/data/example_format.h"
#include "core/data/example_testing.h"
#include "core/data/file_records.h"
#include "core/summary/tf_record.h"
#include "google/protobuf/text_format.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kCsv, kTsv, kExample, kTfRecords, kNumKinds };

constexpr char kPath[] = "/records";
constexpr char kFeatures[] = R"(
  features { name: 'numbers'
    columns { column: 'a' number { log: true stddev: 2 min: -3 max: 3 } }
    columns { column: 'a' missing {} }
    columns { column: 'b' number { size: 2 missing: 7 } separator: '|' } }
  features { name: 'word' columns { column: 'c' } }
  features { name: 'bucket' columns { column: 'a' buckets { boundaries: [0, 1, 2] } } }
  features { name: 'crossed' columns { cross { columns: ['a', 'c'] } } }
  features { name: 'bag'
    columns { column: 'd' separator: '|' weight_separator: ':' max_values: 3 }
    columns { column: 'c' vocabulary { values: ['x', 'y'] others: 3 } } }
  features { name: 'whole' columns { column: 'd' integer {} separator: '|' max_values: 1 } }
  labels { name: 'label' column: 'e' values: ['no', 'yes'] missing: 1 })";

const RecordSchema& Schema() {
  static const RecordSchema schema = {{{"numbers", Shape({4})},
                                       {"word", {}, FeatureKind::kId, false, 1000},
                                       {"bucket", {}, FeatureKind::kId, false, 1000},
                                       {"crossed", {}, FeatureKind::kId, false, 1000},
                                       {"bag", {}, FeatureKind::kBag, true, 1000},
                                       {"whole", {}, FeatureKind::kBag}},
                                      {{"label", 2}}};
  return schema;
}

v1::DataConfig ConfigOf(uint8_t kind) {
  const std::string source = kind == kCsv ? "csv {}"
                             : kind == kTsv
                                 ? "csv { separator: 'tab' header: ['a','b','c','d','e'] }"
                                 : "tf_record {}";
  v1::DataConfig data;
  Check(google::protobuf::TextFormat::ParseFromString(absl::StrCat(source, kFeatures), &data),
        "the configuration is one");
  return data;
}

absl::StatusOr<std::unique_ptr<const RecordFormat>> FormatOf(uint8_t kind, FileSystem* files) {
  static const std::array<v1::DataConfig, kNumKinds> configs = {
      ConfigOf(kCsv), ConfigOf(kTsv), ConfigOf(kExample), ConfigOf(kTfRecords)};
  if (kind < kExample) return NewCsvFormat(configs[kind], Schema(), kPath, files);
  return NewExampleFormat(configs[kind], Schema(), kPath, files);
}

void CheckIsSound(const Batch& batch, int64_t records) {
  Check(batch.size() == records, "a batch has the records that it was asked for");
  for (size_t i = 0; i < batch.features.size(); ++i) {
    const FeatureValues& values = batch.features[i];
    if (!values.offsets.empty()) {
      Check(static_cast<size_t>(values.offsets.back()) == values.ids.size(), "offsets fit ids");
    }
    const bool weighted = Schema().features[i].weighted;
    Check(values.weights.size() == (weighted ? values.ids.size() : 0), "each id has a weight");
    for (const uint64_t id : values.ids) {
      Check(Schema().features[i].num_ids == 0 || id < 1000, "an embedding has rows for all ids");
    }
  }
  for (const float label : batch.labels.front().span()) {
    Check(label == 0 || label == 1, "a label is a class");
  }
}

absl::Status ReadAll(const FileRecords& records) {
  std::vector<int64_t> all(records.size());
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  const absl::Status status = records.Read(all, &batch);
  if (status.ok()) CheckIsSound(batch, records.size());
  return status;
}

absl::StatusOr<std::shared_ptr<const FileRecords>> Open(uint8_t kind, int64_t max_bad_records,
                                                        FileSystem* files) {
  auto format = FormatOf(kind, files);
  if (!format.ok()) return format.status();
  return FileRecords::Open({kPath}, *std::move(format), max_bad_records, files);
}

void TestFile(uint8_t kind, absl::string_view content) {
  MemoryFileSystem files;
  files.SetContent(kPath, std::string(content));
  const auto tolerant = Open(kind, 1 << 30, &files);
  if (tolerant.ok() && (*tolerant)->size() > 0) {
    Check(ReadAll(**tolerant).ok(), "what is not left out is a record");
  }
  const auto strict = Open(kind, 0, &files);
  const absl::Status status = strict.ok() ? ReadAll(**strict) : strict.status();
  Check(status.ok() || absl::StartsWith(status.message(), kPath), "an error names the file");
  Check(!absl::StrContains(status.message(), '\n'), "an error is one line");
  if (!tolerant.ok() || !status.ok()) return;
  Check((*tolerant)->size() == (*strict)->size(), "a file of records has no bad one");
}

// Lines without quotation marks have the same fields in both ways of reading them.
void TestFields(absl::string_view content) {
  using Fields = std::vector<std::pair<std::string, size_t>>;
  for (const absl::string_view line : absl::StrSplit(content, '\n')) {
    const std::string text(line);  // so that reading beyond its end is seen
    Fields plain, any;
    const auto add_to = [](Fields* fields) {
      return [fields](const CsvField& field) {
        Check(field.index == fields->size(), "fields are counted");
        fields->emplace_back(field.text, field.begin);
      };
    };
    RecordError error;
    std::list<std::string> kept;
    const auto keep = [&](std::string unescaped) -> absl::string_view {
      return kept.emplace_front(std::move(unescaped));
    };
    ForEachPlainField(text, ',', add_to(&plain));
    if (absl::StrContains(text, '"')) {
      ForEachField(text, {}, keep, add_to(&any), &error);
      continue;
    }
    Check(ForEachField(text, {}, keep, add_to(&any), &error), "nothing is quoted");
    Check(plain == any, "the fields are the same");
  }
}

std::string SomeExample() {
  return ExampleBuilder()
      .Numbers("b", {0.5f, 2})
      .Texts("c", {"x"})
      .Integers("a", {-3})
      .Integers("d", {4, 5, 6, 7})
      .Texts("e", {"yes"})
      .Build();
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  AddSeeds(
      kCsv,
      {"a,b,c,d,e\n1,2|3,x,7:0.5|8,yes\n , ,?, ,no\r\n\"-1.5e1\",\"2|3\",\"say \"\"hi\"\"\",9,\n",
       "e,d,c,b,a,f\nyes,5,NA,1|2,x\nno,1\n", "a,\"b"},
      &seeds);
  AddSeeds(kTsv, {"1\t2|3\tx\t7\tyes\n\t\t\t\t\n9999\t\"1\"|\ty\t7:x\tmaybe\n"}, &seeds);
  AddSeeds(kExample, {SomeExample(), "", SomeExample().substr(0, 30)}, &seeds);
  AddSeeds(kTfRecords,
           {EncodeTfRecord(SomeExample()) + EncodeTfRecord(""), EncodeTfRecord("abc") + "def"},
           &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  kind %= kNumKinds;
  if (kind == kCsv) TestFields(input);
  TestFile(kind, kind == kExample ? EncodeTfRecord(input) : std::string(input));
}

}  // namespace keelson
