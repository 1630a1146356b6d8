#include "cli/ckpt_inspect.h"

#include <algorithm>
#include <sstream>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CkptInspectTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteTestSnapshot(directory_, 100);
    WriteTestSnapshot(directory_, 200);
  }

  std::string Prefix(int64_t step) const {
    return directory_ + "/model.ckpt-" + std::to_string(step);
  }
  void Flip(const std::string& path, size_t position) {
    WriteRawFile(path, Flipped(ReadRawFile(path), position));
  }

  const std::string directory_ = FreshDirectory();
  std::ostringstream out_;
};

TEST_F(CkptInspectTest, ListTellsStepsSizesAndTheNewest) {
  ASSERT_TRUE(ListSnapshots(directory_, &out_).ok());
  std::istringstream lines(out_.str());
  std::string header, first, second, rest;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_THAT(header, HasSubstr("time (UTC)"));
  EXPECT_THAT(first, AllOf(HasSubstr("100 "), HasSubstr(Prefix(100)), Not(HasSubstr("newest"))));
  EXPECT_THAT(second, AllOf(HasSubstr("200 "), HasSubstr(Prefix(200) + " (newest)")));
  size_t bytes = ReadRawFile(Prefix(200) + ".index").size();
  for (int i = 0; i < 3; ++i) bytes += ReadRawFile(DataPath(Prefix(200), i, 3)).size();
  EXPECT_THAT(second, HasSubstr(" " + std::to_string(bytes) + " "));
  EXPECT_THAT(second, HasSubstr("  9  "));
  EXPECT_FALSE(std::getline(lines, rest));
}

TEST_F(CkptInspectTest, ListSaysWhatIsDamaged) {
  ASSERT_TRUE(RemoveFile(Prefix(100) + ".index").ok());
  ASSERT_TRUE(RemoveFile(DataPath(Prefix(200), 1, 3)).ok());
  ASSERT_TRUE(ListSnapshots(directory_, &out_).ok());
  EXPECT_THAT(out_.str(),
              HasSubstr(Prefix(100) + " damaged: cannot open " + Prefix(100) + ".index"));
  EXPECT_THAT(out_.str(),
              HasSubstr(Prefix(200) + " (newest) damaged: cannot open " + Prefix(200) + ".data-"));
}

TEST_F(CkptInspectTest, NoSnapshotsIsAnError) {
  const std::string empty = FreshDirectory();
  const absl::Status status = ListSnapshots(empty, &out_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(empty + ": no snapshots"));
  for (const std::string& name : {empty, empty + "/model.ckpt-1"}) {
    EXPECT_EQ(ShowSnapshot(name, &out_).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(VerifySnapshots(name, &out_).status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_F(CkptInspectTest, ShowTellsTheJobAndEveryTensor) {
  ASSERT_TRUE(ShowSnapshot(directory_, &out_).ok());
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr(Prefix(200)));
  EXPECT_THAT(text, HasSubstr("0000000000000abc"));
  EXPECT_THAT(text, HasSubstr("epoch 1, record 640 of 1000 is next, 64 at a time"));
  EXPECT_THAT(text, HasSubstr("records: 64, ranges: 1"));
  EXPECT_THAT(text, HasSubstr("0000000000000def"));
  EXPECT_THAT(text, HasSubstr("shard-1-of-2   step 200, blocks: 1, updates: at most 200\n"));
  EXPECT_THAT(text, HasSubstr("dense/kernel           float32  [4, 3]  48     "
                              "file 0 at 0 [0,2:0,3], file 1 at 0 [2,2:0,3]\n"));
  EXPECT_THAT(text, HasSubstr("global_step            int64    []      8      file 2 at 0\n"));
}

TEST_F(CkptInspectTest, ShowTakesAPrefixAndItsIndex) {
  for (const std::string& name : {Prefix(100), Prefix(100) + ".index"}) {
    out_.str("");
    ASSERT_TRUE(ShowSnapshot(name, &out_).ok());
    EXPECT_THAT(out_.str(), HasSubstr("step           100\n"));
  }
}

TEST_F(CkptInspectTest, ShowPrintsValues) {
  ASSERT_TRUE(ShowValues(directory_, "dense/kernel", 0, &out_).ok());
  EXPECT_EQ(out_.str(), "0 1 2\n3 4 5\n6 7 8\n9 10 11\n");
  out_.str("");
  ASSERT_TRUE(ShowValues(directory_, "dense/kernel", 4, &out_).ok());
  EXPECT_EQ(out_.str(), "0 1 2\n3\n8 elements more\n");
  out_.str("");
  ASSERT_TRUE(ShowValues(directory_, "global_step", 10, &out_).ok());
  EXPECT_EQ(out_.str(), "200\n");
  out_.str("");
  ASSERT_TRUE(ShowValues(directory_, "_keelson/job", 10, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("\\x"));
  EXPECT_EQ(ShowValues(directory_, "dense", 0, &out_).code(), absl::StatusCode::kNotFound);
}

TEST_F(CkptInspectTest, VerifyPassesWhatIsSound) {
  const auto sound = VerifySnapshots(directory_, &out_);
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_TRUE(*sound);
  EXPECT_THAT(out_.str(), HasSubstr("ok: " + Prefix(100) + ": 9 tensors, "));
  EXPECT_THAT(out_.str(), HasSubstr("ok: " + Prefix(200) + ": 9 tensors, "));
}

TEST_F(CkptInspectTest, VerifyNamesEveryProblem) {
  Flip(DataPath(Prefix(200), 0, 3), 0);
  Flip(DataPath(Prefix(200), 0, 3), 30);
  ASSERT_TRUE(RemoveFile(DataPath(Prefix(200), 1, 3)).ok());
  const std::string chief = DataPath(Prefix(200), 2, 3);
  WriteRawFile(chief, ReadRawFile(chief) + "x");
  Flip(Prefix(100) + ".index", 10);
  const auto sound = VerifySnapshots(directory_, &out_);
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_FALSE(*sound);
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("damaged: " + Prefix(100) + ".index"));
  const std::string first = "damaged: " + DataPath(Prefix(200), 0, 3) + ": tensor 'dense/kernel";
  EXPECT_THAT(text, HasSubstr(first + "' in bytes [0, 24): checksum mismatch\n"));
  EXPECT_THAT(text, HasSubstr(first + "/Momentum' in bytes [24, 48): checksum mismatch\n"));
  EXPECT_THAT(text, HasSubstr("damaged: cannot open " + DataPath(Prefix(200), 1, 3) + ": "));
  EXPECT_THAT(text, HasSubstr("damaged: " + chief + ": has "));
  EXPECT_THAT(text, Not(HasSubstr("ok: ")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

}  // namespace
}  // namespace keelson
