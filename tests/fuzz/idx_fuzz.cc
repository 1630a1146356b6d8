// libFuzzer program for IDX files. Kinds of input: a plain file; a gzip file; what is compressed in
// a gzip file. The next byte is the number of dimensions that are expected.

#include "core/data/idx_file.h"
#include "core/data/idx_testing.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kPlain, kGzip, kContent, kNumKinds };

constexpr size_t kMaxDeflateRatio = 1032;
constexpr int kMaxRank = 4;

void TestFile(const std::string& name, absl::string_view content, int rank) {
  const absl::StatusOr<IdxArray> array = ReadIdxFile(InputFile(name, content), rank);
  if (!array.ok()) return;
  int64_t values = 1;
  for (const int64_t dim : array->dims) values *= dim;
  Check(static_cast<int64_t>(array->values.size()) == values, "an array has what its extents say");
  Check(array->values.size() <= kMaxDeflateRatio * content.size(), "values come out of the file");
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string content = '\2' + IdxContent({2, 2, 3}, "twelve bytes");
  std::vector<std::string> seeds;
  AddSeeds(kPlain, {content, '\0' + IdxContent({4}, "abcd")}, &seeds);
  AddSeeds(kGzip, {'\2' + GzipContent(absl::string_view(content).substr(1))}, &seeds);
  AddSeeds(kContent, {content}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  if (input.empty()) return;
  const int rank = 1 + static_cast<uint8_t>(input[0]) % kMaxRank;
  input.remove_prefix(1);
  switch (kind % kNumKinds) {
    case kPlain:
      return TestFile("idx", input, rank);
    case kGzip:
      return TestFile("idx.gz", input, rank);
    default:
      return TestFile("idx.gz", GzipContent(input), rank);
  }
}

}  // namespace keelson
