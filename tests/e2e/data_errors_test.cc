// Programs that meet unusable data: one line that names the file, exit code 2.
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gtest/gtest.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

constexpr char kImages[] = "digits-images-idx3-ubyte";
constexpr char kLabels[] = "digits-labels-idx1-ubyte";

// A directory with ten sound digits.
std::string SoundData(bool gzip) {
  const std::string directory = FreshDirectory();
  WriteIdxPair(directory, "digits", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, gzip, 28);
  return directory;
}

// The chief alone on this data.
ProgramRun RunOn(const std::string& data_dir) {
  const std::string directory = FreshDirectory();
  const std::string config = JoinPath(directory, "config.textproto");
  WriteTestFile(config, JobConfig(10));
  return RunProgram(Role::kChief, {"--config=" + config, "--data_dir=" + data_dir,
                                   "--model_dir=" + JoinPath(directory, "model")});
}

void CutInHalf(const std::string& path) {
  const std::string content = *ReadFile(path);
  WriteTestFile(path, content.substr(0, content.size() / 2));
}

TEST(DataErrorsTest, SoundDataTrains) {
  EXPECT_EQ(RunOn(SoundData(false)).exit_code, 0);
  EXPECT_EQ(RunOn(SoundData(true)).exit_code, 0);
}

TEST(DataErrorsTest, MissingDirectory) {
  ExpectOneError(RunOn("/no/such/folder"), kPermanent, {"/no/such/folder"});
}

TEST(DataErrorsTest, DirectoryWithoutData) {
  const std::string directory = FreshDirectory();
  ExpectOneError(RunOn(directory), kPermanent, {directory});
}

TEST(DataErrorsTest, ImagesWithoutLabels) {
  const std::string directory = SoundData(false);
  ASSERT_TRUE(RemoveFile(JoinPath(directory, kLabels)).ok());
  ExpectOneError(RunOn(directory), kPermanent, {JoinPath(directory, "digits"), "labels"});
}

TEST(DataErrorsTest, TruncatedFile) {
  const std::string directory = SoundData(false);
  CutInHalf(JoinPath(directory, kImages));
  ExpectOneError(RunOn(directory), kPermanent, {JoinPath(directory, kImages)});
}

TEST(DataErrorsTest, TruncatedGzip) {
  const std::string directory = SoundData(true);
  const std::string path = JoinPath(directory, absl::StrCat(kImages, ".gz"));
  CutInHalf(path);
  ExpectOneError(RunOn(directory), kPermanent, {path});
}

TEST(DataErrorsTest, NotGzip) {
  const std::string directory = SoundData(true);
  const std::string path = JoinPath(directory, absl::StrCat(kLabels, ".gz"));
  WriteTestFile(path, "this is not gzip");
  ExpectOneError(RunOn(directory), kPermanent, {path});
}

TEST(DataErrorsTest, LabelOutOfRange) {
  const std::string directory = FreshDirectory();
  WriteIdxPair(directory, "digits", {0, 1, 2, 3, 4, 5, 6, 7, 8, 10}, false, 28);
  ExpectOneError(RunOn(directory), kPermanent, {JoinPath(directory, kLabels), "record 9", "10"});
}

TEST(DataErrorsTest, ImagesOfAnotherSize) {
  const std::string directory = FreshDirectory();
  WriteIdxPair(directory, "digits", {0, 1, 2, 3, 4}, false, 14);
  ExpectOneError(RunOn(directory), kPermanent,
                 {JoinPath(directory, kImages), "model.input_shape", "14x14"});
}

TEST(DataErrorsTest, EveryRoleThatReadsDataSaysSo) {
  Job job({}, JobConfig(10));
  job.AddFlag("--data_dir=/no/such/folder");
  for (const Task& task : {kChiefTask, WorkerTask(0), kEvaluatorTask}) {
    job.Start(task);
    job.ExpectExit(task, kPermanent);
    ExpectOneError({kPermanent, job.Log(task)}, kPermanent, {"/no/such/folder"});
  }
}

}  // namespace
}  // namespace keelson
