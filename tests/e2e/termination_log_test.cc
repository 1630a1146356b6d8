// The last messages of the programs, in the file that Kubernetes makes for them.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// An empty file, as the container's.
class TerminationFile {
 public:
  TerminationFile() : path_(JoinPath(FreshDirectory(), "termination-log")) {
    EXPECT_TRUE(WriteFileAtomically(path_, "").ok());
  }

  std::string flag() const { return "--termination_log=" + path_; }
  std::string text() const { return ReadFile(path_).value_or("no file"); }

 private:
  const std::string path_;
};

TEST(TerminationLogTest, OfAJobHasItsResult) {
  Job job({.ps = 1, .workers = 1}, JobConfig(100));
  const std::vector<Task> tasks = {PsTask(0), kChiefTask, WorkerTask(0), kEvaluatorTask};
  const std::vector<TerminationFile> files(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) job.Start(tasks[i], {files[i].flag()});
  job.ExpectAllDone();
  const char* const result =
      "done at step 100(; training: loss=[0-9.e-]*)?; evaluation: accuracy=[0-9.e-]* "
      "loss=[0-9.e-]*";
  EXPECT_THAT(files[1].text(), MatchesRegex(result));
  for (const size_t other : {0, 2, 3}) EXPECT_EQ(files[other].text(), "done");
  job.Start(kChiefTask, {files[1].flag()});
  job.ExpectAllDone();
  EXPECT_EQ(files[1].text(),
            absl::StrCat("nothing to do: ", job.model_dir(), " holds this job, done at step 100"));
}

TEST(TerminationLogTest, WithoutEvaluationHasTheStep) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(100));
  const TerminationFile file;
  job.AddFlag(Role::kChief, file.flag());
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(file.text(), HasSubstr("done at step 100"));
  EXPECT_THAT(file.text(), testing::Not(HasSubstr("evaluation")));
}

TEST(TerminationLogTest, OfAStoppedProgramSaysSo) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(100'000'000));
  const TerminationFile file;
  job.AddFlag(Role::kChief, file.flag());
  job.StartAll();
  job.WaitForStep(kChiefTask, 10);
  job.process(kChiefTask).Signal(SIGTERM);
  job.ExpectExit(kChiefTask, 143);
  EXPECT_THAT(file.text(), HasSubstr("stopped: by a signal at step "));
}

TEST(TerminationLogTest, HasTheError) {
  const TerminationFile file;
  RunProgram(Role::kChief, {file.flag(), "--config=/no/such/file"});
  EXPECT_THAT(file.text(), HasSubstr("/no/such/file"));
  RunProgram(Role::kWorker, {file.flag(), "--no_such_flag"});
  EXPECT_THAT(file.text(), HasSubstr("--no_such_flag"));
}

}  // namespace
}  // namespace keelson
