#include "evaluator/script_form.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace keelson {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<ScriptForm> Read(const std::vector<uint64_t>& numbers, const std::string& text) {
  ScriptMessageWriter writer(ScriptMessageKind::kForm);
  for (const uint64_t number : numbers) writer.Number(number);
  return ReadScriptForm(writer.Text(text).message());
}

TEST(ScriptFormTest, NumbersOfAShape) {
  const auto form = Read({3, 28, 28, 1}, "");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_THAT(form->input_shape, ElementsAre(28, 28, 1));
  EXPECT_EQ(InputElements(*form), 784);
}

TEST(ScriptFormTest, Columns) {
  const auto form = Read({0}, "age\tnumber\ncity\ttext");
  ASSERT_TRUE(form.ok()) << form.status();
  ASSERT_EQ(form->columns.size(), 2u);
  EXPECT_EQ(form->columns[0].name, "age");
  EXPECT_EQ(form->columns[1].kind, "text");
  EXPECT_EQ(InputElements(*form), 0);
}

TEST(ScriptFormTest, WhatIsNone) {
  const auto error = [](const std::vector<uint64_t>& numbers, const std::string& text) {
    return std::string(Read(numbers, text).status().message());
  };
  const std::string begin = "the script's predictions: expected ";
  EXPECT_EQ(error({}, ""), begin + "a shape or columns, found neither");
  EXPECT_EQ(error({4, 1, 1, 1, 1}, ""), begin + "one to three extents, found 4");
  EXPECT_EQ(error({2, 2, 0}, ""), begin + "1 to 1048576 numbers, found an extent of 0");
  EXPECT_EQ(error({2, 1024, 1025}, ""), begin + "1 to 1048576 numbers, found an extent of 1025");
  EXPECT_EQ(error({1, 4}, "more"), begin + "a shape alone, found another length of the message");
  const std::string kinds = "a column's name and number, integer or text, found ";
  EXPECT_EQ(error({0}, ""), begin + kinds + "\"\" and \"\"");
  EXPECT_EQ(error({0}, "age\tdate"), begin + kinds + "\"age\" and \"date\"");
  EXPECT_EQ(error({0}, "age\ttext\nage\tnumber"),
            begin + "columns with names of their own, found \"age\" twice");
}

}  // namespace
}  // namespace keelson
