// Programs that meet unusable data: one line that names the file, exit code 2.
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gmock/gmock.h"
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

// A job on the libsvm files of a directory.
std::string LinesConfig(const std::string& data_dir, const std::string& more) {
  return absl::StrCat(R"(
    model {
      features { name: "features" bag { weighted: true } }
      layers { name: "score" inputs: "features" embedding_bag { rows: 100 dim: 1 combiner: SUM } }
      loss { kind: SIGMOID_CROSS_ENTROPY }
    }
    optimizer { adagrad {} }
    learning_rate { base: 0.1 }
    train { batch_size: 4 seed: 3 epochs: 3 }
    data { libsvm {} data_dir: ")",
                      data_dir, R"(" )", more, " }");
}

// The chief alone on a libsvm file of 50 lines, of which line 33 is `line`.
ProgramRun RunOnLines(const std::string& line, const std::string& more = "") {
  const std::string directory = FreshDirectory();
  std::string content;
  for (int i = 1; i <= 50; ++i) {
    absl::StrAppend(&content, i == 33 ? line : absl::StrCat(i % 2, " ", i, ":1 77:0.5"), "\n");
  }
  const std::string data = JoinPath(directory, "data");
  EXPECT_TRUE(CreateDirectories(data).ok());
  WriteTestFile(JoinPath(data, "lines"), content);
  const std::string config = JoinPath(directory, "config.textproto");
  WriteTestFile(config, LinesConfig(data, more));
  return RunProgram(Role::kChief,
                    {"--config=" + config, "--model_dir=" + JoinPath(directory, "model")});
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

TEST(DataErrorsTest, ALineThatIsNoRecord) {
  EXPECT_EQ(RunOnLines("1 5:1").exit_code, 0);
  ExpectOneError(RunOnLines("1 5:1 3:1"), kPermanent,
                 {"lines:33:7: expected an index of 6 or more, as they ascend, found \"3:1\""});
}

TEST(DataErrorsTest, LinesThatAreNoRecordsMayBeLeftOut) {
  const ProgramRun run = RunOnLines("1 5:1 3:1", "max_bad_records: 1");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.log, testing::HasSubstr("1 of 50 lines are left out"));
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
