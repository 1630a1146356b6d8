#include "dashboard/runs/run_set.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunSetTest : public testing::Test {
 protected:
  RunSetTest() {
    options_.file_system = &memory_;
    options_.clock = &clock_;
  }
  RunFiles MakeRun(const std::string& model_dir) {
    RunFiles files(&memory_, model_dir);
    files.Write("status.json", TrainingStatus().dump());
    return files;
  }
  std::unique_ptr<RunSet> Create() {
    auto set = RunSet::Create(options_);
    EXPECT_TRUE(set.ok()) << set.status();
    return set.ok() ? *std::move(set) : nullptr;
  }
  static std::vector<std::string> Ids(const RunSet& set) {
    std::vector<std::string> ids;
    for (const auto& run : set.All()) ids.push_back(run->id());
    return ids;
  }
  static std::string StateOf(const keelson::Run& run) {
    std::string state;
    run.Read([&](const RunData& data) { state = data.state.state; });
    return state;
  }

  MemoryFileSystem memory_;
  ManualClock clock_;
  RunSet::Options options_;
};

TEST_F(RunSetTest, ShowsTheJobsOwnRunBeforeItsDirectoryExists) {
  options_.model_dir = "/jobs/mnist/";
  options_.live = true;
  const auto set = Create();
  EXPECT_THAT(Ids(*set), ElementsAre("mnist"));
  EXPECT_FALSE(set->Poll());
  EXPECT_EQ(StateOf(*set->Find("mnist")), "waiting");
  MakeRun("/jobs/mnist");
  set->Poll();
  EXPECT_EQ(StateOf(*set->Find("mnist")), "running");
  EXPECT_TRUE(set->Find("mnist")->live());
  EXPECT_EQ(set->Find("other"), nullptr);
  EXPECT_EQ(set->Find(""), nullptr);
}

TEST_F(RunSetTest, ADirectoryThatIsNotThere) {
  options_.model_dir = "/nowhere";
  auto status = RunSet::Create(options_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("--model_dir: cannot open /nowhere"));
  options_.model_dir.clear();
  options_.runs = {"/nowhere"};
  status = RunSet::Create(options_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("--runs: cannot open /nowhere"));
}

TEST_F(RunSetTest, FlagsThatMakeNoSense) {
  for (const char* flag : {"", "name=", "=/jobs"}) {
    options_.runs = {flag};
    const absl::Status status = RunSet::Create(options_).status();
    EXPECT_EQ(status, absl::InvalidArgumentError(
                          absl::StrCat("--runs: expected NAME=DIR or DIR, found \"", flag, "\"")));
  }
}

TEST_F(RunSetTest, NamesAndDirectories) {
  MakeRun("/a/mnist");
  MakeRun("/b/mnist");
  MakeRun("/c/x=y");
  options_.runs = {"/a/mnist", "baseline=/b/mnist", "/c/x=y", "/a/mnist"};
  const auto set = Create();
  EXPECT_THAT(Ids(*set), ElementsAre("mnist", "baseline", "x-y"));
  EXPECT_EQ(set->Find("baseline")->model_dir(), "/b/mnist");
  EXPECT_EQ(set->Find("x-y")->name(), "x=y");
}

TEST_F(RunSetTest, ADirectoryIsOneRunHoweverItIsNamed) {
  MakeRun("/runs/a");
  options_.model_dir = "/runs/a/";
  options_.runs = {"/runs", "again=/runs/a"};
  EXPECT_THAT(Ids(*Create()), ElementsAre("a"));
}

TEST_F(RunSetTest, RunsOfOneNameHaveIdsOfTheirOwn) {
  for (const char* directory : {"/a/mnist", "/b/mnist", "/c/mnist"}) MakeRun(directory);
  options_.runs = {"/a/mnist", "/b/mnist", "/c/mnist"};
  EXPECT_THAT(Ids(*Create()), ElementsAre("mnist", "mnist-2", "mnist-3"));
}

TEST_F(RunSetTest, IdsAreHarmlessWhateverTheDirectoriesAreCalled) {
  const std::string names[] = {"<script>",           "a b", "..%2f", "\xff\xfe", "...", "a/b?c#d",
                               std::string(300, 'x')};
  options_.runs = {"/runs"};
  MakeRun("/runs/dir");
  for (const std::string& name : names) {
    RunFiles(&memory_, absl::StrCat("/runs/", name)).Write("DONE", "{}");
  }
  const auto set = Create();
  EXPECT_GE(set->All().size(), 7u);
  for (const std::string& id : Ids(*set)) {
    EXPECT_THAT(id, testing::MatchesRegex("[A-Za-z0-9._-]+"));
    EXPECT_THAT(id, testing::Not(testing::MatchesRegex("[.]+")));
    EXPECT_LE(id.size(), 110u);
  }
}

TEST_F(RunSetTest, TheRunsOfAFolderAlsoThoseThatComeLater) {
  MakeRun("/runs/b");
  MakeRun("/runs/a");
  RunFiles(&memory_, "/runs/notes").Write("readme", "no run");
  options_.runs = {"all=/runs"};
  const auto set = Create();
  EXPECT_THAT(Ids(*set), ElementsAre("all-a", "all-b"));
  EXPECT_EQ(set->Find("all-a")->name(), "all/a");
  MakeRun("/runs/c");
  set->Poll();
  EXPECT_THAT(Ids(*set), ElementsAre("all-a", "all-b"));
  clock_.Advance(absl::Seconds(6));
  set->Poll();
  EXPECT_THAT(Ids(*set), ElementsAre("all-a", "all-b", "all-c"));
  EXPECT_EQ(StateOf(*set->Find("all-c")), "restarting");  // its status is six seconds old
}

TEST_F(RunSetTest, AFolderThatBecomesARunItselfLater) {
  RunFiles(&memory_, "/empty");
  RunFiles(&memory_, "/named");
  options_.runs = {"/empty", "first=/named/"};
  const auto set = Create();
  EXPECT_THAT(Ids(*set), IsEmpty());
  MakeRun("/empty");
  MakeRun("/named");
  MakeRun("/named/export");
  clock_.Advance(absl::Seconds(6));
  set->Poll();
  EXPECT_THAT(Ids(*set), ElementsAre("empty", "first"));
  EXPECT_EQ(set->Find("first")->model_dir(), "/named");
}

TEST_F(RunSetTest, ADirectoryCalledModelHasTheNameOfTheOneAroundIt) {
  MakeRun("/a/mnist/model");
  MakeRun("/model");
  options_.runs = {"/a/mnist/model/", "/model", "x=/model"};
  const auto set = Create();
  EXPECT_THAT(Ids(*set), ElementsAre("model", "model-2"));
  EXPECT_EQ(set->Find("model")->name(), "mnist");
  EXPECT_EQ(set->Find("model-2")->name(), "model");
}

TEST_F(RunSetTest, TheJobsNameCountsForADirectoryCalledModel) {
  options_.model_dir = "/a/model";
  options_.live = true;
  options_.job_name = "mnist";
  EXPECT_EQ(Create()->Find("model")->name(), "mnist");
  options_.model_dir = "/a/other";
  EXPECT_EQ(Create()->Find("other")->name(), "other");
}

TEST_F(RunSetTest, AChildThatHasItsRunInModel) {
  MakeRun("/runs/mnist-1/model");
  MakeRun("/runs/mnist-2");
  MakeRun("/runs/mnist-2/model");
  RunFiles(&memory_, "/runs/mnist-3/model/eval");
  MakeRun("/jobs/digits/model");
  options_.runs = {"/runs", "all=/runs", "/jobs/digits", "best=/jobs/digits"};
  const auto set = Create();
  EXPECT_THAT(Ids(*set), ElementsAre("mnist-1", "mnist-2", "model"));
  EXPECT_EQ(set->Find("mnist-1")->name(), "mnist-1");
  EXPECT_EQ(set->Find("mnist-1")->model_dir(), "/runs/mnist-1/model");
  EXPECT_EQ(set->Find("mnist-2")->model_dir(), "/runs/mnist-2");
  EXPECT_EQ(set->Find("model")->name(), "digits");
  MakeRun("/runs/mnist-3/model");
  clock_.Advance(absl::Seconds(6));
  set->Poll();
  EXPECT_THAT(Ids(*set), ElementsAre("mnist-1", "mnist-2", "model", "mnist-3"));
  options_.runs = {"best=/jobs/digits", "all=/runs"};
  EXPECT_THAT(Ids(*Create()), ElementsAre("best", "all-mnist-1", "all-mnist-2", "all-mnist-3"));
}

TEST_F(RunSetTest, BeyondTheMostRunsItIsSaidOnce) {
  constexpr int kMost = 500;
  for (int i = 0; i < kMost + 2; ++i) MakeRun(absl::StrCat("/runs/", 1000 + i));
  options_.runs = {"/runs"};
  testing::internal::CaptureStderr();
  const auto set = Create();
  clock_.Advance(absl::Seconds(6));
  set->Poll();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(set->All().size(), size_t{kMost});
  const std::string said = "more than 500 runs, the others are not shown: /runs/1500";
  EXPECT_THAT(log, testing::HasSubstr(said));
  EXPECT_EQ(log.find("more than"), log.rfind("more than")) << log;
}

TEST_F(RunSetTest, ARunThatIsOverIsReadNowAndThen) {
  const RunFiles files = MakeRun("/runs/a");
  Json status = TrainingStatus();
  status["phase"] = "DONE";
  files.Write("status.json", status.dump());
  options_.runs = {"/runs"};
  const auto set = Create();
  set->Poll();
  EXPECT_EQ(StateOf(*set->Find("a")), "done");
  files.Write("status.json", TrainingStatus().dump());
  set->Poll();
  EXPECT_EQ(StateOf(*set->Find("a")), "done");
  clock_.Advance(absl::Seconds(5));
  set->Poll();
  EXPECT_EQ(StateOf(*set->Find("a")), "running");
  // One that runs is read each time.
  status["phase"] = "FINISHING";
  files.Write("status.json", status.dump());
  set->Poll();
  EXPECT_EQ(StateOf(*set->Find("a")), "finishing");
}

TEST_F(RunSetTest, FilesThatArePipesAreToldAndWaitedForByNobody) {
  options_.file_system = FileSystem::Real();
  options_.model_dir = FreshDirectory();
  ASSERT_EQ(mkdir((options_.model_dir + "/eval").c_str(), 0700), 0);
  for (const char* name : {"status.json", "placement.json", "train_config.textproto", "checkpoint",
                           "DONE", "events.out.tfevents.1700000000.host", "eval/metrics.jsonl"}) {
    ASSERT_EQ(mkfifo((options_.model_dir + "/" + name).c_str(), 0600), 0) << name;
  }
  const auto set = Create();
  EXPECT_FALSE(set->Poll());
  std::vector<std::string> troubles;
  set->All().at(0)->Read([&](const RunData& data) { troubles = data.troubles; });
  for (const char* name : {"status.json", "eval/metrics.jsonl"}) {
    EXPECT_THAT(troubles, testing::Contains(testing::HasSubstr(absl::StrCat(
                              options_.model_dir, "/", name, ": not a regular file"))));
  }
}

}  // namespace
}  // namespace keelson
