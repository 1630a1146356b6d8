// libFuzzer program for IDX files, and for what unpacks files. Kinds of input: a plain file; a gzip
// file; what is compressed in a gzip file; a zstd file; what is compressed in a zstd file. The next
// byte is the number of dimensions that are expected.

// For ZSTD_getFrameHeader.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "core/data/idx_file.h"
#include "core/data/idx_testing.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kPlain, kGzip, kContent, kZstd, kZstdContent, kNumKinds };

constexpr size_t kMaxDeflateRatio = 1032;
// A block of four bytes may be 128 KiB.
constexpr size_t kMaxZstdRatio = 1 << 15, kMaxZstdBytes = 256;
constexpr int kMaxRank = 4;

// Whether a frame asks for more memory than an input shall take, which up to 128 MiB is right.
// Those of versions before 0.8, which Debian's library reads, too, may.
bool AsksForALargeWindow(absl::string_view content) {
  constexpr absl::string_view kMagic = "\xb5\x2f\xfd";  // behind the byte of the version
  constexpr char kVersion = '\x28';
  constexpr uint64_t kMost = 1 << 20;
  for (size_t at = 0; (at = content.find(kMagic, at)) != absl::string_view::npos; ++at) {
    if (at == 0) continue;
    if (content[at - 1] != kVersion) return true;
    ZSTD_frameHeader header = {};
    const absl::string_view frame = content.substr(at - 1);
    const size_t result = ZSTD_getFrameHeader(&header, frame.data(), frame.size());
    if (result == 0 && header.windowSize > kMost) return true;
  }
  return false;
}

void TestFile(const std::string& name, absl::string_view content, int rank,
              size_t max_ratio = kMaxDeflateRatio) {
  const absl::StatusOr<IdxArray> array = ReadIdxFile(InputFile(name, content), rank);
  if (!array.ok()) return;
  int64_t values = 1;
  for (const int64_t dim : array->dims) values *= dim;
  Check(static_cast<int64_t>(array->values.size()) == values, "an array has what its extents say");
  Check(array->values.size() <= max_ratio * content.size(), "values come out of the file");
}

void TestZstd(absl::string_view content, int rank) {
  if (content.size() > kMaxZstdBytes || AsksForALargeWindow(content)) return;
  TestFile("idx.zst", content, rank, kMaxZstdRatio);
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string content = '\2' + IdxContent({2, 2, 3}, "twelve bytes");
  std::vector<std::string> seeds;
  AddSeeds(kPlain, {content, '\0' + IdxContent({4}, "abcd")}, &seeds);
  AddSeeds(kGzip, {'\2' + GzipContent(absl::string_view(content).substr(1))}, &seeds);
  AddSeeds(kContent, {content}, &seeds);
  AddSeeds(kZstd, {'\2' + ZstdContent(absl::string_view(content).substr(1))}, &seeds);
  AddSeeds(kZstdContent, {content}, &seeds);
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
    case kContent:
      return TestFile("idx.gz", GzipContent(input), rank);
    case kZstd:
      return TestZstd(input, rank);
    default:
      return TestFile("idx.zst", ZstdContent(input), rank, kMaxZstdRatio);
  }
}

}  // namespace keelson
