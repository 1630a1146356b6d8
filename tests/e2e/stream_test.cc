// Jobs on a directory that grows while they train.
#include <signal.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gmock/gmock.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using testing::HasSubstr;

std::string Lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) absl::StrAppend(&lines, i % 2, " ", i % 9, ":1 77:0.5\n");
  return lines;
}

class StreamJobTest : public testing::Test {
 protected:
  StreamJobTest() { WriteTestFile(JoinPath(directory_, "test"), Lines(20)); }

  // Batches of 4 records.
  std::string Config() const {
    return absl::StrCat(R"(
      model {
        features { name: "features" bag { weighted: true } }
        layers { name: "score" inputs: "features" embedding_bag { rows: 100 dim: 1 combiner: SUM } }
        loss { kind: SIGMOID_CROSS_ENTROPY }
      }
      optimizer { adagrad {} }
      learning_rate { base: 0.1 }
      train { batch_size: 4 seed: 3 summary_steps: 1 }
      checkpoint { save_steps: 7 }
      data { libsvm {} stream {} train_files: "part-*" eval_files: "test" data_dir: ")",
                        directory_, R"(" })");
  }
  // The file is there as a whole at once.
  void AddFile(const std::string& name, int records) {
    const std::string hidden = JoinPath(directory_, "." + name);
    WriteTestFile(hidden, Lines(records));
    std::filesystem::rename(hidden, JoinPath(directory_, name));
  }
  void RemoveFile(const std::string& name) { std::filesystem::remove(JoinPath(directory_, name)); }

  const std::string directory_ = FreshDirectory();
};

TEST_F(StreamJobTest, TrainsOnEachRecordOnceWhoeverIsKilled) {
  Job job({}, Config());
  job.StartAll();
  job.WaitForLog(kChiefTask, "training from the start: step 0, a stream of records");
  AddFile("part-1", 40);
  job.WaitForStep(kChiefTask, 10);
  // All of its records are done.
  RemoveFile("part-1");
  job.Kill(kChiefTask);
  AddFile("part-2", 43);
  job.Start(kChiefTask);
  job.WaitForStep(kChiefTask, 20);
  job.Kill(WorkerTask(0));
  job.Start(WorkerTask(0));
  AddFile("part-3", 20);
  AddFile("_END", 0);
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), 26);  // 103 records
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("the stream has a new file: part-3, 20 records"));
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("the stream has ended after 103 records"));
}

TEST_F(StreamJobTest, AStoppedJobGoesOnWhereItsSnapshotIs) {
  AddFile("part-1", 41);
  Job job({}, Config());
  job.StartAll();
  job.WaitForStep(kChiefTask, 10);
  // The chief first: it needs the servers for its last snapshot.
  for (const Task& task :
       {kChiefTask, WorkerTask(0), WorkerTask(1), kEvaluatorTask, PsTask(0), PsTask(1)}) {
    job.process(task).Signal(SIGTERM);
    job.ExpectExit(task, 143);
  }
  EXPECT_EQ(*VerifiedLatestStep(job.model_dir()), 10);
  AddFile("part-2", 8);
  AddFile("_END", 0);
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("model.ckpt-10: step 10, a stream of records"));
  EXPECT_EQ(*DoneStep(job.model_dir()), 13);  // 49 records
}

TEST_F(StreamJobTest, AFileThatIsNoneOfTheFormatEndsTheJobWithItsName) {
  Job job({.evaluator = Job::Evaluator::kNone}, Config());
  job.StartAll();
  WriteTestFile(JoinPath(directory_, "part-1"), "1 none\n");
  job.ExpectExit(kChiefTask, 2);
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr(JoinPath(directory_, "part-1") + ":1:3: expected"));
}

}  // namespace
}  // namespace keelson
