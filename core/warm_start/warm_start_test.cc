#include "core/warm_start/warm_start.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/snapshot_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 7;

std::vector<VariableSpec> Variables() {
  const Initializer own = {Initializer::Kind::kUniform, -0.25f, 0.25f};
  return {{"dense/kernel", Shape({4, 3}), own},
          {"dense/bias", Shape({3}), {}},
          {"head/kernel", Shape({3, 2}), own}};
}

class WarmStartTest : public testing::Test {
 protected:
  // `text` is of InitialValuesConfig, with $D for the directory.
  absl::StatusOr<std::unique_ptr<WarmStart>> Open(std::string text) const {
    for (size_t at = text.find("$D"); at != std::string::npos; at = text.find("$D")) {
      text.replace(at, 2, directory_);
    }
    v1::InitialValuesConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
    ASSIGN_OR_RETURN(std::vector<VariableSpec> variables, WithInitialValues(config, Variables()));
    return WarmStart::Open(config, std::move(variables), kSeed);
  }
  // The error, with $D for the directory.
  std::string Error(const std::string& text) const {
    const absl::Status status = Open(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    std::string message(status.message());
    for (size_t at = message.find(directory_); at != std::string::npos;
         at = message.find(directory_)) {
      message.replace(at, directory_.size(), "$D");
    }
    return message;
  }
  void WriteTensors(MemoryTensors tensors) const {
    ASSERT_EQ(WriteSafetensors(directory_ + "/a.safetensors", tensors.List(), {}, &tensors),
              absl::OkStatus());
  }
  static std::vector<float> Read(const WarmStart& warm, size_t variable, int64_t first,
                                 int64_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(warm.Read(variable, first, absl::MakeSpan(values)), absl::OkStatus());
    return values;
  }

  const std::string directory_ = FreshDirectory();
};

TEST_F(WarmStartTest, TakesValuesOfASnapshotAndInitializesTheRest) {
  WriteTestSnapshot(directory_, 40, 100);
  const auto warm = Open(
      "groups { variables: 'dense/*' from { path: '$D/model.ckpt-40' } }"
      "groups { variables: 'head/*' constant { value: 3 } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  // Across the slices of two servers.
  EXPECT_THAT(Read(**warm, 0, 4, 4), ElementsAre(104, 105, 106, 107));
  EXPECT_THAT(Read(**warm, 1, 0, 3), ElementsAre(100, 101, 102));
  EXPECT_THAT(Read(**warm, 2, 0, 2), ElementsAre(3, 3));
  ASSERT_NE((*warm)->origin(0), nullptr);
  EXPECT_EQ((*warm)->origin(0)->tensor, "dense/kernel");
  EXPECT_EQ((*warm)->origin(2), nullptr);
  EXPECT_EQ((*warm)->Verify(StopSignal()), absl::OkStatus());
}

TEST_F(WarmStartTest, ADirectoryStandsForItsNewestSnapshot) {
  WriteTestSnapshot(directory_, 10, 0);
  WriteTestSnapshot(directory_, 20, 50);
  const auto warm = Open("groups { variables: 'dense/bias' from { path: '$D' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_THAT(Read(**warm, 1, 0, 3), ElementsAre(50, 51, 52));
  EXPECT_EQ((*warm)->OpenedPath(directory_), directory_ + "/model.ckpt-20");
}

TEST_F(WarmStartTest, MapsNamesAndConvertsTypes) {
  MemoryTensors tensors;
  // 1, 2, -0.5 in float16 and bfloat16.
  tensors.AddValues<uint16_t>("model.dense.b", BundleDtype::kFloat16, Shape({3}),
                              {0x3c00, 0x4000, 0xb800});
  tensors.AddValues<uint16_t>("model.head.w", BundleDtype::kBfloat16, Shape({3, 2}),
                              {0x3f80, 0x4000, 0xbf00, 0, 0, 0});
  tensors.AddValues<double>("model.dense.w", BundleDtype::kFloat64, Shape({4, 3}),
                            std::vector<double>(12, 0.1));
  WriteTensors(std::move(tensors));
  const auto warm = Open(
      "groups { variables: '*/kernel' from { path: '$D/a.safetensors' name: 'model.*.w' } }"
      "groups { variables: '*/bias' from { path: '$D/a.safetensors' name: 'model.*.b' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_THAT(Read(**warm, 0, 11, 1), ElementsAre(0.1f));
  EXPECT_THAT(Read(**warm, 1, 0, 3), ElementsAre(1, 2, -0.5f));
  EXPECT_THAT(Read(**warm, 2, 1, 2), ElementsAre(2, -0.5f));
}

TEST_F(WarmStartTest, WhatIsMissingStartsAsTheNextGroupOrItsLayerHasIt) {
  WriteTestSnapshot(directory_, 40, 100);
  MemoryTensors tensors;
  tensors.AddValues<float>("head/kernel", BundleDtype::kFloat32, Shape({3, 2}), Iota(6, 10));
  tensors.AddValues<float>("dense/bias", BundleDtype::kFloat32, Shape({3}), Iota(3, 10));
  WriteTensors(std::move(tensors));
  const auto warm = Open(
      "groups { variables: '*' from { path: '$D/a.safetensors' missing: INITIALIZE } }"
      "groups { variables: '*' from { path: '$D/model.ckpt-40' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_THAT(Read(**warm, 0, 0, 2), ElementsAre(100, 101)) << "of the second file";
  EXPECT_THAT(Read(**warm, 1, 0, 2), ElementsAre(10, 11)) << "of the first one";
  const auto alone =
      Open("groups { variables: '*' from { path: '$D/model.ckpt-40' missing: INITIALIZE } }");
  ASSERT_TRUE(alone.ok()) << alone.status();
  std::vector<float> initial(4);
  FillInitialValues(Variables()[2], kSeed, 2, absl::MakeSpan(initial));
  EXPECT_EQ(Read(**alone, 2, 2, 4), initial);
}

TEST_F(WarmStartTest, ReportsWhatWasFoundAndWhatWasNot) {
  WriteTestSnapshot(directory_, 40, 100);
  const auto snapshot =
      Open("groups { variables: '*/kernel' from { path: '$D' missing: INITIALIZE } }");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->Report(),
            absl::StrCat("initial values: 1 of 3 variables from files; otherwise 2 (dense/bias, "
                         "head/kernel); not found 1 (head/kernel); ",
                         directory_, "/model.ckpt-40: 1 taken, 1 (dense/bias) not"));
  const auto all = Open(
      "groups { variables: 'dense/*' from { path: '$D/model.ckpt-40' } }"
      "groups { variables: 'head/kernel' constant {} }");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ((*all)->Report(),
            absl::StrCat("initial values: 2 of 3 variables from files; otherwise 1 (head/kernel); ",
                         directory_, "/model.ckpt-40: 2 taken, nothing not"));
}

TEST_F(WarmStartTest, FilesThatCannotBeUsedAreNamed) {
  const auto of = [](const std::string& path) {
    return "groups { variables: '*' from { path: '" + path + "' } }";
  };
  const std::string kExpected =
      "initial_values.groups[0].from: expected a snapshot or FILE.safetensors, found ";
  EXPECT_THAT(Error(of("$D/absent.safetensors")),
              HasSubstr(kExpected + "cannot open $D/absent.safetensors: No such file"));
  EXPECT_THAT(Error(of("$D/model.ckpt-3")), HasSubstr(kExpected + "$D/model.ckpt-3"));
  EXPECT_THAT(Error(of("$D")), HasSubstr(kExpected + "$D"));
  WriteRawFile(directory_ + "/text", "no tensors\n");
  EXPECT_THAT(Error(of("$D/text")), HasSubstr(kExpected + "$D/text"));
  WriteRawFile(directory_ + "/a.safetensors", "no tensors, but 16 bytes");
  const absl::Status damaged = Open(of("$D/a.safetensors")).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()),
              HasSubstr("initial_values.groups[0].from: " + directory_ + "/a.safetensors: "));
}

TEST_F(WarmStartTest, AFileThatIsReadAsAWholeIsRefused) {
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/bias", BundleDtype::kFloat32, Shape({3}), Iota(3));
  ASSERT_EQ(WriteNpz(directory_ + "/a.npz", tensors.List(), &tensors), absl::OkStatus());
  EXPECT_EQ(Error("groups { variables: 'dense/bias' from { path: '$D/a.npz' } }"),
            "initial_values.groups[0].from: expected a snapshot or FILE.safetensors, found "
            "$D/a.npz, which cannot be read in parts");
}

TEST_F(WarmStartTest, VariablesThatTheFileLacksAreNamed) {
  WriteTestSnapshot(directory_, 40);
  EXPECT_EQ(Error("groups { variables: '*' from { path: '$D/model.ckpt-40' } }"),
            "initial_values.groups[0].from: expected all variables in $D/model.ckpt-40, found none "
            "of 1 (head/kernel); missing: INITIALIZE starts them otherwise; the file has 2 "
            "(dense/bias, dense/kernel)");
  EXPECT_EQ(
      Error("groups { variables: '*/kernel' from { path: '$D/model.ckpt-40' name: 'net/*' } }"),
      "initial_values.groups[0].from: expected all variables in $D/model.ckpt-40, found none "
      "of 2 (dense/kernel as 'net/dense', head/kernel as 'net/head'); missing: INITIALIZE "
      "starts them otherwise; the file has 2 (dense/bias, dense/kernel)");
}

TEST_F(WarmStartTest, AGroupThatFindsNothingIsAnError) {
  WriteTestSnapshot(directory_, 40);
  const std::string group =
      "groups { variables: 'head/*' from { path: '$D/model.ckpt-40' missing: INITIALIZE } }";
  EXPECT_EQ(Error(group),
            "initial_values.groups[0].from: expected at least one variable of the group in the "
            "file, found none in $D/model.ckpt-40, such as head/kernel; the file has 2 "
            "(dense/bias, dense/kernel)");
  // One that is not asked is none.
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/bias", BundleDtype::kFloat32, Shape({3}), Iota(3));
  WriteTensors(std::move(tensors));
  const auto warm = Open(
      "groups { variables: 'dense/bias' from { path: '$D/a.safetensors' missing: INITIALIZE } }"
      "groups { variables: 'dense/bias' from { path: '$D/model.ckpt-40' } }");
  EXPECT_TRUE(warm.ok()) << warm.status();
}

TEST_F(WarmStartTest, OtherShapesAndTypesAreNamed) {
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/kernel", BundleDtype::kFloat32, Shape({3, 4}), Iota(12));
  tensors.AddValues<float>("dense/bias", BundleDtype::kComplex64, Shape({3}), Iota(6));
  tensors.AddValues<float>("head", BundleDtype::kFloat32, Shape({6}), Iota(6));
  WriteTensors(std::move(tensors));
  EXPECT_EQ(Error("groups { variables: 'dense/*' from { path: '$D/a.safetensors' } }"
                  "groups { variables: '*' from { path: '$D/a.safetensors' name: 'head' } }"),
            "initial_values.groups[0].from: dense/kernel: expected shape [4, 3], found [3, 4] in "
            "$D/a.safetensors; dense/bias: expected numbers, found complex64 [3] in "
            "$D/a.safetensors; head/kernel as 'head': expected shape [3, 2], found [6] in "
            "$D/a.safetensors");
}

TEST_F(WarmStartTest, NumbersThatAreNotFiniteAreFound) {
  MemoryTensors tensors;
  tensors.AddValues<double>("dense/bias", BundleDtype::kFloat64, Shape({3}), {1, 1e300, 2});
  WriteTensors(std::move(tensors));
  const auto warm = Open("groups { variables: 'dense/bias' from { path: '$D/a.safetensors' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ((*warm)->Verify(StopSignal()),
            absl::InvalidArgumentError(absl::StrCat(
                "initial_values.groups[0].from: dense/bias: expected finite numbers, found inf as "
                "element 1 in ",
                directory_, "/a.safetensors")));
}

TEST_F(WarmStartTest, DamageIsFoundBeforeValuesAreUsed) {
  WriteTestSnapshot(directory_, 40);
  const std::string data = directory_ + "/model.ckpt-40.data-00001-of-00003";
  WriteRawFile(data, Flipped(ReadRawFile(data), 5));
  const auto warm = Open("groups { variables: 'dense/kernel' from { path: '$D' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  const absl::Status status = (*warm)->Verify(StopSignal());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(data));
}

TEST_F(WarmStartTest, AStopEndsTheReading) {
  WriteTestSnapshot(directory_, 40);
  const auto warm = Open("groups { variables: 'dense/kernel' from { path: '$D' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  StopSignal stop;
  stop.Raise();
  EXPECT_EQ((*warm)->Verify(stop).code(), absl::StatusCode::kCancelled);
}

TEST_F(WarmStartTest, FilesThatAreReplacedMeanwhileStayTheSame) {
  WriteTestSnapshot(directory_, 40, 100);
  const auto warm = Open("groups { variables: 'dense/bias' from { path: '$D/model.ckpt-40' } }");
  ASSERT_TRUE(warm.ok()) << warm.status();
  const std::vector<std::string> names = *ListDirectory(directory_);
  for (const std::string& name : names) {
    ASSERT_EQ(RemoveFile(JoinPath(directory_, name)), absl::OkStatus());
  }
  EXPECT_THAT(Read(**warm, 1, 0, 3), ElementsAre(100, 101, 102));
}

}  // namespace
}  // namespace keelson
