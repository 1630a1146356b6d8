#include "cli/ckpt_diff.h"

#include <limits>
#include <sstream>
#include <string>

#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class CkptDiffTest : public testing::Test {
 protected:
  bool Equal(double tolerance = 0) {
    out_.str("");
    const auto equal = DiffTensors(&a_, &b_, tolerance, &out_);
    EXPECT_TRUE(equal.ok()) << equal.status();
    return equal.ok() && *equal;
  }
  void AddFloats(std::vector<float> a, std::vector<float> b) {
    const Shape shape({static_cast<int64_t>(a.size())});
    a_.AddValues("w", BundleDtype::kFloat32, shape, a);
    b_.AddValues("w", BundleDtype::kFloat32, shape, b);
  }

  MemoryTensors a_;
  MemoryTensors b_;
  std::ostringstream out_;
};

TEST_F(CkptDiffTest, EqualTensorsAreEqual) {
  a_ = OneOfEachType();
  b_ = OneOfEachType();
  EXPECT_TRUE(Equal());
  EXPECT_EQ(out_.str(), "equal: 0 of 16 tensors differ\n");
}

TEST_F(CkptDiffTest, TellsTheLargestDifferenceAndWhere) {
  a_.AddValues<float>("w", BundleDtype::kFloat32, Shape({2, 2}), {1, 2, 100, 4});
  b_.AddValues<float>("w", BundleDtype::kFloat32, Shape({2, 2}), {1, 3, 104, 4});
  EXPECT_FALSE(Equal());
  EXPECT_EQ(out_.str(),
            "w: 2 of 4 elements differ, by at most 4 at [1, 0] (100 and 104), relatively "
            "0.333333\ndifferent: 1 of 1 tensors differ\n");
}

TEST_F(CkptDiffTest, ToleranceIsAbsoluteBelowOneAndRelativeAbove) {
  AddFloats({0.0f, 1000.0f}, {0.001f, 1001.0f});
  EXPECT_FALSE(Equal(0.0005));
  EXPECT_TRUE(Equal(0.0011));
  EXPECT_EQ(out_.str(), "equal: 0 of 1 tensors differ\n");
}

TEST_F(CkptDiffTest, NumbersThatAreNotFinite) {
  AddFloats({kNan, kInfinity, 0.0f}, {-kNan, kInfinity, -0.0f});
  EXPECT_TRUE(Equal());
  AddFloats({kNan}, {1});
  EXPECT_FALSE(Equal(1e9));
  AddFloats({kInfinity}, {-kInfinity});
  EXPECT_FALSE(Equal(1e9));
  EXPECT_THAT(out_.str(),
              HasSubstr("1 of 1 elements differ, by at most inf at [0] (inf and -inf)"));
}

TEST_F(CkptDiffTest, TellsWhatOnlyOneHasAndOtherShapes) {
  a_.AddValues<float>("a", BundleDtype::kFloat32, Shape({1}), {1});
  b_.AddValues<float>("b", BundleDtype::kFloat32, Shape({1}), {1});
  a_.AddValues<float>("w", BundleDtype::kFloat32, Shape({1, 2}), {1, 2});
  b_.AddValues<float>("w", BundleDtype::kFloat32, Shape({2, 1}), {1, 2});
  EXPECT_FALSE(Equal());
  EXPECT_EQ(out_.str(),
            "a: only in the first, float32 [1]\nb: only in the second, float32 [1]\n"
            "w: shapes differ, float32 [1, 2] and float32 [2, 1]\n"
            "different: 3 of 3 tensors differ\n");
}

TEST_F(CkptDiffTest, TypesDifferEvenIfNumbersAreEqual) {
  a_.AddValues<float>("w", BundleDtype::kFloat32, Shape({2}), {1, 2});
  b_.AddValues<int64_t>("w", BundleDtype::kInt64, Shape({2}), {1, 3});
  EXPECT_FALSE(Equal());
  EXPECT_THAT(out_.str(), HasSubstr("w: types differ, float32 and int64; 1 of 2 elements differ, "
                                    "by at most 1 at [1] (2 and 3)"));
  EXPECT_FALSE(Equal(1));
  EXPECT_THAT(out_.str(), HasSubstr("w: types differ, float32 and int64\n"));
}

TEST_F(CkptDiffTest, ComplexNumbersAreComparedByTheirBytes) {
  a_.AddValues<float>("z", BundleDtype::kComplex64, Shape({1}), {1, 2});
  b_.AddValues<float>("z", BundleDtype::kComplex64, Shape({1}), {1, 3});
  EXPECT_FALSE(Equal(10));
  EXPECT_THAT(out_.str(), HasSubstr("z: elements differ"));
}

TEST_F(CkptDiffTest, LargeIntegersAreComparedExactly) {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  a_.AddValues<int64_t>("id", BundleDtype::kInt64, Shape({1}), {kLarge});
  b_.AddValues<int64_t>("id", BundleDtype::kInt64, Shape({1}), {kLarge - 1});
  a_.AddValues<uint64_t>("u", BundleDtype::kUint64, Shape({1}), {UINT64_MAX});
  b_.AddValues<uint64_t>("u", BundleDtype::kUint64, Shape({1}), {UINT64_MAX - 1});
  EXPECT_FALSE(Equal());
  EXPECT_THAT(out_.str(), HasSubstr("id: 1 of 1 elements differ, by at most 1 at [0] "
                                    "(9007199254740993 and 9007199254740992)"));
  EXPECT_THAT(out_.str(), HasSubstr("u: 1 of 1 elements differ, by at most 1"));
  EXPECT_THAT(out_.str(), HasSubstr("different: 2 of 2 tensors differ"));
}

TEST_F(CkptDiffTest, StringsAreComparedByTheirContent) {
  a_.AddStrings("s", {"a", "b", "d"});
  b_.AddStrings("s", {"a", "c", "e"});
  EXPECT_FALSE(Equal());
  EXPECT_EQ(out_.str(),
            "s: 2 of 3 strings differ, the first at [1] (\"b\" and \"c\")\n"
            "different: 1 of 1 tensors differ\n");
  b_.AddStrings("s", {"a", "b", "d"});
  EXPECT_TRUE(Equal());
}

TEST_F(CkptDiffTest, WhatCannotBeReadIsNotCalledEqual) {
  AddFloats({1}, {1});
  for (MemoryTensors* tensors : {&a_, &b_}) {
    tensors->Add("v", BundleDtype::kVariant, Shape(), "");
    tensors->Break("v", absl::UnimplementedError("type variant"));
  }
  EXPECT_FALSE(Equal());
  EXPECT_EQ(out_.str(),
            "v: not compared: type variant\n"
            "not all compared: 0 of 2 tensors differ, 1 could not be compared\n");
}

TEST_F(CkptDiffTest, RecordsOfStateAreCountedApart) {
  AddFloats({1}, {1});
  a_.AddStrings("_keelson/job", {"one"});
  EXPECT_TRUE(Equal());
  EXPECT_EQ(out_.str(), "equal: 0 of 1 tensors differ; 1 records of state do\n");
  b_.AddStrings("_keelson/job", {"one"});
  EXPECT_TRUE(Equal());
  EXPECT_EQ(out_.str(), "equal: 0 of 1 tensors differ\n");
}

TEST_F(CkptDiffTest, TypesThatAreNoNumbersAreComparedByTheirBytes) {
  a_.Add("q", BundleDtype::kQuint8, Shape({2}), "ab");
  b_.Add("q", BundleDtype::kQuint8, Shape({2}), "ac");
  a_.Add("t", BundleDtype::kQuint8, Shape({2}), "ab");
  b_.Add("t", BundleDtype::kUint8, Shape({2}), "ab");
  EXPECT_FALSE(Equal(10));
  EXPECT_EQ(out_.str(),
            "q: elements differ, both quint8 [2]\nt: types differ, quint8 and uint8\n"
            "different: 2 of 2 tensors differ\n");
}

TEST_F(CkptDiffTest, DamageIsAnError) {
  AddFloats({1}, {1});
  b_.Break("w", absl::DataLossError("checksum mismatch"));
  EXPECT_EQ(DiffTensors(&a_, &b_, 0, &out_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace keelson
