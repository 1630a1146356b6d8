#include "bench/data/sample_lines.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

using Random = std::mt19937_64;

uint64_t Below(uint64_t n, Random* random) { return (*random)() % n; }

// Appends lines until there are so many bytes.
template <typename AppendLine>
std::string Lines(size_t bytes, AppendLine append_line) {
  Random random(1);
  std::string lines;
  while (lines.size() < bytes) append_line(&random, &lines);
  return lines;
}

void AppendLabel(Random* random, std::string* lines) {
  lines->append(Below(4, random) == 0 ? "+1" : "-1");
}

}  // namespace

std::string LinesLikeA9a(size_t bytes) {
  return Lines(bytes, [](Random* random, std::string* lines) {
    constexpr uint64_t kPairs = 14, kIndices = 123;
    AppendLabel(random, lines);
    for (uint64_t k = 0; k < kPairs; ++k) {
      // One of each run of indices, so that they ascend.
      const uint64_t begin = 1 + k * kIndices / kPairs, end = 1 + (k + 1) * kIndices / kPairs;
      absl::StrAppend(lines, " ", begin + Below(end - begin, random), ":1");
    }
    lines->append(" \n");
  });
}

std::string LinesLikeRcv1(size_t bytes) {
  return Lines(bytes, [](Random* random, std::string* lines) {
    constexpr uint64_t kIndices = 47'236, kMostStep = 1'200;
    AppendLabel(random, lines);
    for (uint64_t index = 1 + Below(kMostStep, random); index <= kIndices;
         index += 1 + Below(kMostStep, random)) {
      absl::StrAppend(lines, " ", index, ":0.",
                      absl::StrFormat("%06d", static_cast<int>(Below(200'000, random))));
    }
    lines->append("\n");
  });
}

std::string LinesLikeCriteo(size_t bytes) {
  return Lines(bytes, [](Random* random, std::string* lines) {
    constexpr int kNumbers = 13, kStrings = 26;
    constexpr uint64_t kEmpty = 7;  // every seventh
    lines->append(Below(4, random) == 0 ? "1" : "0");
    for (int k = 0; k < kNumbers; ++k) {
      lines->append("\t");
      if (Below(kEmpty, random) == 0) continue;
      // Small counts are frequent, and large ones are there.
      const double exponent = static_cast<double>(Below(1000, random)) / 1000;
      const auto count = static_cast<int64_t>(std::pow(20'000.0, exponent * exponent));
      absl::StrAppend(lines, Below(50, random) == 0 ? -1 : count - 1);
    }
    for (int k = 0; k < kStrings; ++k) {
      lines->append("\t");
      if (Below(kEmpty, random) == 0) continue;
      absl::StrAppend(lines, absl::Hex(static_cast<uint32_t>((*random)()), absl::kZeroPad8));
    }
    lines->append("\n");
  });
}

}  // namespace keelson::bench
