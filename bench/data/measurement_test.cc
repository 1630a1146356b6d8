#include "bench/data/measurement.h"

#include "absl/strings/match.h"
#include "bench/data/sample_lines.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/criteo_format.h"
#include "core/data/libsvm_format.h"
#include "gmock/gmock.h"

namespace keelson::bench {
namespace {

using ::testing::ElementsAre;

const RecordSchema kBag = {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}};

LineFile LineFileOf(const std::string& content) {
  const std::string path = JoinPath(FreshDirectory(), "lines");
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return {"s", path, [] { return *NewLibsvmFormat({}, kBag); }, 0.5, path + ".columns"};
}

TEST(MeasurementTest, MeasuresEachOperation) {
  for (const std::string& content : {LinesLikeA9a(100'000), LinesLikeRcv1(100'000)}) {
    const auto all = Measure(LineFileOf(content), 100, 2);
    ASSERT_TRUE(all.ok()) << all.status();
    std::vector<std::string> names;
    for (const MeasuredLines& measured : *all) {
      names.push_back(measured.operation);
      EXPECT_GT(measured.gigabytes.min, 0);
      EXPECT_GT(measured.records.min, 0);
      if (absl::StartsWith(measured.operation, "columnar")) continue;
      EXPECT_EQ(measured.goal, measured.operation == "parse" ? 0.5 : 0);
    }
    EXPECT_THAT(names, ElementsAre("memchr", "parse", "index", "in order", "at random",
                                   "columnar, in order", "columnar, at random"));
    EXPECT_EQ((*all)[5].goal, 3 * (*all)[3].gigabytes.median);
    EXPECT_EQ((*all)[6].goal, 0);
  }
}

TEST(MeasurementTest, CriteoLinesAreRecords) {
  LineFile subject = LineFileOf(LinesLikeCriteo(100'000));
  subject.new_format = [] {
    return *NewCriteoFormat({}, {{{"c1", {}, FeatureKind::kId}}, {{"label", 2}}});
  };
  EXPECT_TRUE(Measure(subject, 64, 1).ok());
}

TEST(MeasurementTest, LinesThatAreNoRecordsAreAnError) {
  EXPECT_EQ(Measure(LineFileOf("1 2:3\n1 x\n"), 10, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson::bench
