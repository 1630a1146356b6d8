#include "ps_server/service/table_limits_log.h"

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TableLimitsLogTest : public OneTableTest {
 protected:
  TableLimitsLogTest() : OneTableTest(Bounded()) {}

  static TableSpec Bounded() {
    TableSpec spec;
    spec.max_rows = 512;
    return spec;
  }
  std::vector<std::string> Note(int64_t refused, int64_t evicted) {
    lines_.clear();
    TableSize size;
    size.rows = 512;
    size.refused_rows = refused;
    size.evicted_rows = evicted;
    log_.Note(*store_, {size});
    return lines_;
  }

  ManualClock clock_;
  std::vector<std::string> lines_;
  TableLimitsLog log_{&clock_, [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(TableLimitsLogTest, SaysOnceAMinuteWhatWasRefusedAndEvicted) {
  EXPECT_THAT(Note(0, 0), IsEmpty());
  EXPECT_THAT(Note(3, 0),
              ElementsAre(HasSubstr("table users: left out 3 updates of rows that do not exist and "
                                    "are beyond max_rows (512) or the memory for rows")));
  EXPECT_THAT(Note(4, 5), ElementsAre(HasSubstr("table users: evicted 5 rows to make place")));
  EXPECT_THAT(Note(5, 6), IsEmpty());
  clock_.Advance(TableLimitsLog::kPause);
  EXPECT_THAT(Note(5, 6), ElementsAre(HasSubstr("left out 5"), HasSubstr("evicted 6")));
  clock_.Advance(TableLimitsLog::kPause);
  EXPECT_THAT(Note(5, 6), IsEmpty());
  EXPECT_THAT(Note(1, 0), ElementsAre(HasSubstr("left out 1"))) << "of another shard";
}

}  // namespace
}  // namespace keelson
