#include "core/data/columns/record_columns.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ShownTexts(const ColumnValue& value) {
  const std::vector<std::string> names = {"column"};
  const RecordColumns columns = ColumnTexts(names, {value});
  EXPECT_EQ(columns.size(), 1u);
  EXPECT_EQ(columns[0].name, "column");
  return columns[0].values;
}

TEST(RecordColumnsTest, ATextIsOneValueAndWhatIsMissingIsNone) {
  EXPECT_THAT(ShownTexts(ColumnValue::Text("a|b")), ElementsAre("a|b"));
  EXPECT_THAT(ShownTexts(ColumnValue()), IsEmpty());
}

TEST(RecordColumnsTest, ListsHaveAllTheirValues) {
  const absl::string_view texts[] = {"a", "b, c"};
  EXPECT_THAT(ShownTexts(ColumnValue::Texts(texts)), ElementsAre("a", "b, c"));
  const int64_t integers[] = {7, std::numeric_limits<int64_t>::min()};
  EXPECT_THAT(ShownTexts(ColumnValue::Integers(integers)),
              ElementsAre("7", "-9223372036854775808"));
  EXPECT_THAT(ShownTexts(ColumnValue::Integers({})), IsEmpty());
}

TEST(RecordColumnsTest, ANumberIsTheShortestTextThatIsReadAsIt) {
  const float numbers[] = {0.1f, 1e30f, -2.0f, 16777217.0f};
  EXPECT_THAT(ShownTexts(ColumnValue::Numbers(numbers)),
              ElementsAre("0.1", "1e+30", "-2", "16777216"));
  // As in training, not-a-number is missing.
  const float missing[] = {std::nanf("")};
  EXPECT_THAT(ShownTexts(ColumnValue::Numbers(missing)), ElementsAre(""));
}

}  // namespace
}  // namespace keelson
