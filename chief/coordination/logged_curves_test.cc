#include "chief/coordination/logged_curves.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(LoggedCurvesTest, MeansAreOfAllValuesOfTheStepsBelow) {
  LoggedCurves curves;
  curves.Add("a", 0, 1);
  curves.Add("a", 0, 3);  // another worker's
  curves.Add("a", 9, 8);
  curves.Add("a", 10, 100);
  curves.Add("b", 4, -1);
  EXPECT_THAT(curves.TakeBelow(10), ElementsAre(Pair("a", 4), Pair("b", -1)));
  EXPECT_THAT(curves.TakeBelow(10), IsEmpty());
  curves.Add("a", 3, 0);  // late
  EXPECT_THAT(curves.TakeBelow(20), ElementsAre(Pair("a", 50)));
  EXPECT_THAT(curves.newest(), ElementsAre(Pair("a", 50), Pair("b", -1)));
}

TEST(LoggedCurvesTest, WhatIsNotFiniteIsMissing) {
  LoggedCurves curves;
  curves.Add("a", 0, std::nan(""));
  curves.Add("a", 1, std::numeric_limits<double>::infinity());
  EXPECT_THAT(curves.TakeBelow(5), IsEmpty());
  curves.Add("a", 6, std::nan(""));
  curves.Add("a", 7, 2);
  EXPECT_THAT(curves.TakeBelow(10), ElementsAre(Pair("a", 2)));
}

TEST(LoggedCurvesTest, NamesAndValuesAreBounded) {
  LoggedCurves curves;
  for (size_t i = 0; i <= LoggedCurves::kMaxNames; ++i) curves.Add(absl::StrCat("n", i), 0, 1);
  EXPECT_THAT(curves.TakeBelow(1), SizeIs(LoggedCurves::kMaxNames));
  for (size_t i = 0; i <= LoggedCurves::kMaxKept; ++i) {
    curves.Add("n0", static_cast<int64_t>(i), i == LoggedCurves::kMaxKept ? 1e9 : 1);
  }
  EXPECT_THAT(curves.TakeBelow(int64_t{1} << 40), ElementsAre(Pair("n0", 1)));
}

}  // namespace
}  // namespace keelson
