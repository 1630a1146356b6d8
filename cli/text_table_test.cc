#include "cli/text_table.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table;
  table.AddRow({"a", "long", "c"});
  table.AddRow({"wider", "b"});
  table.AddRow({"", "", "end"});
  EXPECT_EQ(table.ToString(), "a      long  c\nwider  b\n             end\n");
}

TEST(TextTableTest, NoRowsAreNoText) { EXPECT_EQ(TextTable().ToString(), ""); }

}  // namespace
}  // namespace keelson
