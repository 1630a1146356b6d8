#include "cli/ckpt_export.h"

#include <sstream>

#include "cli/ckpt_diff.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensor_files/snapshot_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class CkptExportTest : public testing::Test {
 protected:
  CkptExportTest() {
    to_.source = FreshDirectory();
    to_.out = to_.source + "/model.safetensors";
    to_.format = "safetensors";
    WriteTestSnapshot(to_.source, 100, 0.25f);
  }

  absl::Status Export() { return ExportTensors(to_, &out_); }

  ExportOptions to_;
  std::ostringstream out_;
};

TEST_F(CkptExportTest, SlotsAreExportedOnDemand) {
  to_.slots = true;
  ASSERT_TRUE(Export().ok());
  const auto a = OpenTensorSource(to_.source);
  const auto b = OpenTensorSource(to_.out);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto equal = DiffTensors(a->get(), b->get(), 0, &out_);
  ASSERT_TRUE(equal.ok());
  EXPECT_TRUE(*equal);
}

TEST_F(CkptExportTest, TypesThatAFormatLacksAreReplacedOrNamed) {
  to_.source = FreshDirectory() + "/tf";
  WriteRawBundle(to_.source, {{"f", BundleDtype::kFloat8E5m2, Shape({2}), "ab"},
                              {"q", BundleDtype::kQint32, Shape({1}), "abcd"},
                              {"s", BundleDtype::kString, Shape(), "text"},
                              {"z", BundleDtype::kComplex128, Shape(), std::string(16, 'z')}});
  to_.slots = true;
  ASSERT_EQ(Export(), absl::OkStatus());
  EXPECT_THAT(out_.str(), HasSubstr(": 2 of 4 tensors, 6 bytes"));
  EXPECT_THAT(out_.str(),
              HasSubstr("note: safetensors has no qint32: 1 tensors are written as int32\n"
                        "left out, safetensors cannot hold them: s of type string, z of type "
                        "complex128\n"));
  EXPECT_EQ(*(*OpenTensorSource(to_.out))->Read("f"), "ab");
  out_.str("");
  to_.format = "npz";
  to_.out += ".npz";
  ASSERT_EQ(Export(), absl::OkStatus());
  EXPECT_THAT(out_.str(),
              HasSubstr("note: numpy has no float8_e5m2: 1 tensors are written as uint8"));
  const auto npz = OpenTensorSource(to_.out);
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_THAT(NamesOf((*npz)->List()), testing::ElementsAre("f", "q", "z"));
  EXPECT_EQ(*(*npz)->Read("q"), "abcd");
}

TEST_F(CkptExportTest, ReplacesNothingUnasked) {
  WriteRawFile(to_.out, "old");
  const absl::Status status = Export();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr(to_.out + ": exists already; --force"));
  EXPECT_EQ(ReadRawFile(to_.out), "old");
  to_.force = true;
  EXPECT_TRUE(Export().ok());
  EXPECT_TRUE(SafetensorsFile::Open(to_.out).ok());
}

TEST_F(CkptExportTest, ADamagedSnapshotIsAnError) {
  const std::string data = DataPath(to_.source + "/model.ckpt-100", 0, 3);
  WriteRawFile(data, Flipped(ReadRawFile(data), 0));
  EXPECT_EQ(Export().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(FileExists(to_.out));
  to_.format = "hdf5";
  EXPECT_THAT(std::string(Export().message()),
              HasSubstr("--format: expected safetensors, npz or text"));
}

}  // namespace
}  // namespace keelson
