#include "cli/ckpt_import.h"

#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/ckpt_export.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/snapshot_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

// Its variables: dense/kernel [4, 3] and dense/bias [3].
constexpr char kConfig[] = R"pb(
  model {
    input_shape: [ 4 ]
    layers {
      name: "dense"
      dense { units: 3 }
    }
    loss { kind: SOFTMAX_CROSS_ENTROPY }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.5 }
  train { batch_size: 10 max_steps: 10 seed: 5 }
)pb";

class CkptImportTest : public testing::Test {
 protected:
  CkptImportTest() {
    to_.source = directory_ + "/source";
    to_.out = directory_ + "/model.safetensors";
    to_.format = "safetensors";
    from_.source = to_.out;
    from_.model_dir = directory_ + "/new/model";
    config_ = directory_ + "/config.textproto";
    WriteRawFile(config_, kConfig);
  }

  void WriteSource() {
    ASSERT_TRUE(CreateDirectories(to_.source).ok());
    WriteTestSnapshot(to_.source, 100, 0.25f);
  }
  absl::Status Export() { return ExportTensors(to_, &out_); }
  absl::Status Import() { return ImportTensors(from_, &out_); }
  std::string Imported() const { return from_.model_dir + "/model.ckpt-0"; }

  // A safetensors file to import.
  void WriteTensors(MemoryTensors tensors) {
    ASSERT_TRUE(WriteSafetensors(from_.source, tensors.List(), {}, &tensors).ok());
  }
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const absl::Status status = Import();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const std::string directory_ = FreshDirectory();
  std::string config_;
  ExportOptions to_;
  ImportOptions from_;
  std::ostringstream out_;
};

TEST_F(CkptImportTest, ValuesSurviveBothWays) {
  WriteSource();
  for (const char* format : {"safetensors", "npz"}) {
    to_.format = format;
    to_.out = directory_ + "/model." + format;
    ASSERT_TRUE(Export().ok());
    EXPECT_THAT(out_.str(), HasSubstr("2 of 6 tensors, 60 bytes in " + to_.source));
    from_.source = to_.out;
    from_.model_dir = directory_ + "/" + format;
    const absl::Status status = Import();
    ASSERT_TRUE(status.ok()) << status;
    const auto a = BundleReader::Open(to_.source + "/model.ckpt-100");
    const auto b = BundleReader::Open(Imported());
    ASSERT_TRUE(a.ok() && b.ok()) << b.status();
    for (const char* name : {"dense/kernel", "dense/bias"}) {
      EXPECT_EQ(*(*a)->ReadBytes(name), *(*b)->ReadBytes(name)) << name;
    }
    EXPECT_EQ((*b)->List().size(), 3u);
    EXPECT_EQ(*(*b)->ReadInt64("global_step"), 0);
  }
}

TEST_F(CkptImportTest, SlotsAreKnownByTheirNames) {
  WriteSource();
  to_.slots = true;
  ASSERT_TRUE(Export().ok());
  ASSERT_TRUE(Import().ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("imported: 2 (dense/bias, dense/kernel)\nleft out: 4 (beta1_power, "
                        "dense/bias/Momentum, dense/kernel/Momentum, global_step)"));
}

TEST_F(CkptImportTest, AJobStartsFromTheImportedValues) {
  WriteSource();
  ASSERT_TRUE(Export().ok());
  from_.step = 40;
  ASSERT_TRUE(Import().ok());
  const auto found = CheckpointDirectory(FileSystem::Real(), from_.model_dir, Clock::Real()).List();
  ASSERT_TRUE(found.ok() && !found->empty());
  EXPECT_EQ(found->back().step, 40);
  // As a server with an optimizer that has a slot restores it.
  const auto blocks =
      StoredBlocks::Open(found->back().prefix, {{"dense/kernel", Shape({4, 3}), Initializer()}},
                         {std::vector<SlotSpec>{{"Accumulator", 0.1f}}});
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  std::vector<float> values(12);
  std::vector<float> slot(12);
  const absl::Span<float> slots[] = {absl::MakeSpan(slot)};
  StoredBlock state;
  ASSERT_TRUE((*blocks)->Read(0, 0, absl::MakeSpan(values), slots, &state).ok());
  EXPECT_EQ(values, Iota(12, 0.25f));
  EXPECT_EQ(slot, std::vector<float>(12, 0.1f));
  EXPECT_EQ(state.updates, 0);
}

TEST_F(CkptImportTest, OtherNumbersBecomeFloat32) {
  MemoryTensors tensors;
  tensors.AddValues<double>("d", BundleDtype::kFloat64, Shape({2}), {0.1, -2});
  tensors.AddValues<uint16_t>("h", BundleDtype::kFloat16, Shape({1}), {0x3e00});
  tensors.AddValues<uint16_t>("b", BundleDtype::kBfloat16, Shape(), {0xc040});
  tensors.AddValues<int32_t>("i", BundleDtype::kInt32, Shape({1, 1}), {-7});
  tensors.AddValues<float>("z", BundleDtype::kComplex64, Shape({1}), {1, 2});
  tensors.AddValues<float>("none", BundleDtype::kFloat32, Shape({0, 2}), {});
  WriteTensors(std::move(tensors));
  const absl::Status status = Import();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("converted to float32: 4 (b from bfloat16, d from float64, "
                                    "h from float16, i from int32)\nleft out: 1 (z)\n"));
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->ReadTensor("d")->span()[0], 0.1f);
  EXPECT_EQ((*bundle)->ReadTensor("h")->span()[0], 1.5f);
  EXPECT_EQ((*bundle)->ReadTensor("b")->span()[0], -3.0f);
  EXPECT_EQ((*bundle)->ReadTensor("i")->span()[0], -7.0f);
  EXPECT_EQ((*bundle)->ReadTensor("none")->size(), 0);
}

TEST_F(CkptImportTest, WhatAnImportLosesIsSaidOrRefused) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MemoryTensors tensors;
  tensors.AddValues<double>("d", BundleDtype::kFloat64, Shape({4}), {1e300, -1e300, kInfinity, 1});
  tensors.AddValues<int32_t>("i", BundleDtype::kInt32, Shape({2}), {(1 << 24) + 1, 1 << 24});
  WriteTensors(std::move(tensors));
  from_.strict = true;
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                "--strict: d: 1 of 4 elements are not finite; d: 2 of 4 elements are too large for "
                "float32 and become infinite; i: 1 of 2 elements are integers that float32 rounds");
  EXPECT_FALSE(FileExists(IndexPath(Imported())));
  from_.strict = false;
  ASSERT_EQ(Import(), absl::OkStatus());
  EXPECT_THAT(out_.str(), HasSubstr("warning: d: 2 of 4 elements are too large for float32"));
  EXPECT_THAT(out_.str(), HasSubstr("warning: i: 1 of 2 elements"));
}

TEST_F(CkptImportTest, ABundleOfAnotherWriterIsImported) {
  from_.source = directory_ + "/model.ckpt";
  WriteSmallBundle(from_.source);
  from_.renames = {"b=bias"};
  const absl::Status status = Import();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("imported: 2 (bias, w)\nleft out: 2 (global_step, state)\n"));
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->ReadTensor("w")->span()[29], 29.0f);
  EXPECT_EQ((*bundle)->ReadTensor("bias")->span()[3], 3.0f);
  EXPECT_EQ(*(*bundle)->ReadInt64("global_step"), 0);
}

TEST_F(CkptImportTest, TensorsGetOtherNames) {
  MemoryTensors tensors;
  tensors.AddValues<float>("fc.weight", BundleDtype::kFloat32, Shape({4, 3}), Iota(12));
  tensors.AddValues<float>("fc.bias", BundleDtype::kFloat32, Shape({3}), Iota(3));
  tensors.AddValues<float>("other", BundleDtype::kFloat32, Shape({3}), Iota(3));
  WriteTensors(std::move(tensors));
  from_.config_path = config_;
  from_.renames = {"fc.weight=dense/kernel", "fc.bias=dense/bias"};
  const absl::Status status = Import();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(),
              HasSubstr("imported: 2 (dense/kernel, dense/bias)\nleft out: 1 (other)\n"));
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ((*bundle)->ReadTensor("dense/kernel")->span()[11], 11.0f);
}

TEST_F(CkptImportTest, WhatDoesNotFitTheModelIsNamed) {
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/kernel", BundleDtype::kFloat32, Shape({3, 4}), Iota(12));
  WriteTensors(std::move(tensors));
  from_.config_path = config_;
  ExpectRefused(
      absl::StatusCode::kInvalidArgument,
      "dense/kernel expected float32 [4, 3], found float32 [3, 4]; dense/bias is missing");
  from_.config_path = directory_ + "/none";
  ExpectRefused(absl::StatusCode::kNotFound, directory_ + "/none");
}

TEST_F(CkptImportTest, MissingVariablesCanGetTheirInitialValues) {
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/bias", BundleDtype::kFloat32, Shape({3}), {1, 2, 3});
  WriteTensors(std::move(tensors));
  from_.initialize_missing = true;
  ExpectRefused(absl::StatusCode::kInvalidArgument, "--initialize_missing: expected --config");
  from_.config_path = config_;
  ASSERT_TRUE(Import().ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("imported: 1 (dense/bias)\ninitial values: 1 (dense/kernel)\n"));
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok());
  const auto kernel = (*bundle)->ReadTensor("dense/kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_NE(kernel->span()[0], 0.0f);
  EXPECT_EQ((*bundle)->ReadTensor("dense/bias")->span()[2], 3.0f);
}

TEST_F(CkptImportTest, InitialValuesMayComeFromAnotherFile) {
  const std::string other = FreshDirectory();
  WriteTestSnapshot(other, 40, 100);
  WriteRawFile(
      config_,
      absl::StrCat(kConfig, "initial_values { groups { variables: 'dense/*' from { path: '", other,
                   "' } } }"));
  MemoryTensors tensors;
  tensors.AddValues<float>("dense/bias", BundleDtype::kFloat32, Shape({3}), {1, 2, 3});
  WriteTensors(std::move(tensors));
  from_.config_path = config_;
  from_.initialize_missing = true;
  ASSERT_EQ(Import(), absl::OkStatus());
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ((*bundle)->ReadTensor("dense/kernel")->span()[11], 111.0f);
  EXPECT_EQ((*bundle)->ReadTensor("dense/bias")->span()[2], 3.0f);
}

TEST_F(CkptImportTest, MovingAveragesAreValuesLikeAnyOther) {
  WriteRawFile(config_,
               absl::StrReplaceAll(kConfig, {{"loss {", "layers { batch_norm {} } loss {"}}));
  from_.config_path = config_;
  const auto import_with = [this](const std::vector<std::string>& names) {
    MemoryTensors tensors;
    tensors.AddValues<float>("dense/kernel", BundleDtype::kFloat32, Shape({4, 3}), Iota(12));
    for (const std::string& name : names) {
      tensors.AddValues<float>(name, BundleDtype::kFloat32, Shape({3}), {5, 6, 7});
    }
    WriteTensors(std::move(tensors));
    return Import();
  };
  EXPECT_THAT(
      std::string(import_with({"dense/bias", "batch_norm_1/gamma", "batch_norm_1/beta"}).message()),
      HasSubstr("batch_norm_1/moving_mean is missing; batch_norm_1/moving_variance"));
  from_.initialize_missing = true;
  const absl::Status status =
      import_with({"dense/bias", "batch_norm_1/gamma", "batch_norm_1/gamma/Adam",
                   "batch_norm_1/beta", "batch_norm_1/moving_mean"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("initial values: 1 (batch_norm_1/moving_variance)\n"
                                    "left out: 1 (batch_norm_1/gamma/Adam)\n"));
  const auto bundle = BundleReader::Open(Imported());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->ReadTensor("batch_norm_1/moving_mean")->span()[2], 7.0f);
  EXPECT_EQ((*bundle)->ReadTensor("batch_norm_1/moving_variance")->span()[2], 1.0f);
}

TEST_F(CkptImportTest, ADirectoryWithSnapshotsIsLeftAlone) {
  WriteSource();
  ASSERT_TRUE(Export().ok());
  from_.model_dir = to_.source;
  ExpectRefused(absl::StatusCode::kAlreadyExists, "expected no snapshots, found 1; --force");
  from_.step = 100;
  from_.force = true;
  ExpectRefused(absl::StatusCode::kAlreadyExists, "model.ckpt-100: exists already; --step");
  CheckpointDirectory directory(FileSystem::Real(), to_.source, Clock::Real());
  ASSERT_TRUE(directory.WriteDoneMarker(100, 1).ok());
  from_.step = 50;
  ASSERT_TRUE(Import().ok());
  const auto snapshots = directory.List();
  ASSERT_TRUE(snapshots.ok());
  ASSERT_EQ(snapshots->size(), 2u);
  EXPECT_EQ(snapshots->back().step, 50);
  EXPECT_FALSE(directory.ReadDoneMarker()->has_value());
}

TEST_F(CkptImportTest, AJobThatIsDoneIsNotForgottenUnasked) {
  WriteSource();
  ASSERT_TRUE(Export().ok());
  ASSERT_TRUE(CreateDirectories(from_.model_dir).ok());
  CheckpointDirectory directory(FileSystem::Real(), from_.model_dir, Clock::Real());
  ASSERT_TRUE(directory.WriteDoneMarker(100, 1).ok());
  ExpectRefused(absl::StatusCode::kAlreadyExists, "holds a job that is done; --force");
  EXPECT_TRUE(directory.ReadDoneMarker()->has_value());
}

TEST_F(CkptImportTest, NothingStaysOfAnImportThatFails) {
  WriteSource();
  ASSERT_TRUE(Export().ok());
  from_.step = -1;
  ExpectRefused(absl::StatusCode::kInvalidArgument, "--step: expected >= 0, found -1");
  from_.step = 0;
  // The second tensor is damaged.
  from_.source = to_.source;
  const std::string data = DataPath(to_.source + "/model.ckpt-100", 1, 3);
  WriteRawFile(data, Flipped(ReadRawFile(data), 0));
  ExpectRefused(absl::StatusCode::kDataLoss, data + ": tensor 'dense/kernel'");
  EXPECT_TRUE(ListDirectory(from_.model_dir)->empty());
}

TEST_F(CkptImportTest, NothingToImportIsAnError) {
  MemoryTensors tensors;
  tensors.AddValues<int64_t>("global_step", BundleDtype::kInt64, Shape(), {3});
  WriteTensors(std::move(tensors));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "no variables to import");
  EXPECT_FALSE(FileExists(from_.model_dir));
}

}  // namespace
}  // namespace keelson
