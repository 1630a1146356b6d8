#include "core/device/precision.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

TEST(PrecisionTest, NamesAreReadBack) {
  for (Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
    const auto parsed = ParsePrecision(PrecisionName(precision));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, precision);
  }
  EXPECT_EQ(PrecisionName(Precision::kTf32), "tf32");
}

TEST(PrecisionTest, RefusesOtherNames) {
  for (const char* name : {"half", "", "Float32", "float32 "}) {
    const absl::Status status = ParsePrecision(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message(),
              absl::StrCat("precision: expected float32, tf32 or bfloat16, found \"", name, "\""));
  }
}

}  // namespace
}  // namespace keelson
