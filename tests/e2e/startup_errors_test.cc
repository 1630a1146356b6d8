// Programs that cannot take part: one line that names file, peer or flag, the right exit code.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <ostream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "core/rpc/channel.h"
#include "core/rpc/credentials.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "keelson/v1/chief_service.grpc.pb.h"
#include "keelson/v1/parameter_service.grpc.pb.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

constexpr int kTransient = 138;

// Flags for a chief alone with this configuration.
std::vector<std::string> FlagsFor(const std::string& config) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "config.textproto");
  WriteTestFile(path, config);
  return {"--config=" + path, "--model_dir=" + JoinPath(directory, "model")};
}

// Expects that a started task of the job ends with one error.
void ExpectTaskError(Job* job, const Task& task, int exit_code,
                     const std::vector<std::string>& texts) {
  job->ExpectExit(task, exit_code);
  ExpectOneError({exit_code, job->Log(task)}, exit_code, texts);
}

// Listens on "127.0.0.1:port".
class OccupiedAddress {
 public:
  explicit OccupiedAddress(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const std::vector<std::string> parts = absl::StrSplit(address, ':');
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    self.sin_port = htons(static_cast<uint16_t>(std::stoi(parts.at(1))));
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&self), sizeof(self)), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
  }
  ~OccupiedAddress() { close(fd_); }

 private:
  const int fd_;
};

TEST(PeerErrorsTest, PortInUse) {
  Job job({}, JobConfig(kEndless));
  for (const Task& task : {PsTask(1), kChiefTask}) {
    const OccupiedAddress occupied(job.Address(task));
    job.Start(task);
    ExpectTaskError(&job, task, kPermanent, {job.Address(task), "Address already in use"});
  }
}

TEST(PeerErrorsTest, ServerThatNeverAppears) {
  Job job({}, JobConfig(kEndless));
  job.Start(PsTask(0));
  job.Start(kChiefTask, {"--startup_timeout=2"});
  ExpectTaskError(&job, kChiefTask, kTransient, {"ps-1", job.Address(PsTask(1))});
}

TEST(PeerErrorsTest, ChiefThatNeverAppears) {
  Job job({}, JobConfig(kEndless));
  job.Start(WorkerTask(0), {"--peer_timeout=2"});
  ExpectTaskError(&job, WorkerTask(0), kTransient, {"chief", job.Address(kChiefTask)});
}

// A server and a chief of a build that knows of no message protocol.
class OldServer final : public v1::ParameterService::Service {};
class OldChief final : public v1::ChiefService::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*,
                        v1::RegisterResponse*) override {
    return grpc::Status::OK;
  }
};

std::unique_ptr<RpcServer> Serve(const Job& job, const Task& task, grpc::Service* service) {
  auto server = RpcServer::Start(job.Address(task), grpc::InsecureServerCredentials(), {service});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(PeerErrorsTest, ServerOfAnotherBuild) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  OldServer old;
  const auto server = Serve(job, PsTask(0), &old);
  job.Start(kChiefTask);
  ExpectTaskError(&job, kChiefTask, kPermanent,
                  {"ps-0", job.Address(PsTask(0)), "expected message protocol 9, found none"});
}

TEST(PeerErrorsTest, ChiefOfAnotherBuild) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kListed}, JobConfig(kEndless));
  OldChief old;
  const auto chief = Serve(job, kChiefTask, &old);
  for (const Task& task : {WorkerTask(0), kEvaluatorTask}) {
    job.Start(task);
    ExpectTaskError(&job, task, kPermanent,
                    {job.Address(kChiefTask), "expected message protocol 9, found none"});
  }
}

TEST(PeerErrorsTest, CallersOfAnotherBuild) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  job.Start(PsTask(0));
  job.WaitForLog(PsTask(0), "listening");
  Credentials old = job.MemberCredentials("chief");
  old.claim.protocol = "";
  const auto stub = v1::ParameterService::NewStub(
      CreateChannel(job.Address(PsTask(0)), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  AddClaim(old.claim, &context);
  v1::ShardStatus status;
  const grpc::Status refused = stub->Attend(&context, {}, &status);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(refused.error_message().find("expected message protocol 9, found none"),
            std::string::npos);
  job.WaitForLog(PsTask(0), "refused Attend of ");
}

TEST(PeerErrorsTest, TwoWorkersWithTheSameIndex) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  job.AddFlag(Role::kChief, "--lease=2");
  job.StartAll();
  job.WaitForStep(kChiefTask, 10);
  Process& first = job.process(WorkerTask(0));
  const ProgramRun second =
      RunProgram(Role::kWorker, job.FlagsOf(Role::kWorker), job.TfConfig(WorkerTask(0)));
  ExpectOneError(second, kPermanent, {"worker-0"});
  EXPECT_FALSE(first.Poll().has_value());
}

TEST(PeerErrorsTest, TwoServersWithTheSameIndex) {
  Job job({}, JobConfig(kEndless));
  job.Start(PsTask(0));
  job.WaitForLog(PsTask(0), "listening");
  const ProgramRun second = RunProgram(Role::kPs, job.FlagsOf(Role::kPs), job.TfConfig(PsTask(0)));
  ExpectOneError(second, kPermanent, {job.Address(PsTask(0)), "Address already in use"});
}

TEST(PeerErrorsTest, WorkerWithAnotherConfiguration) {
  Job job({.ps = 1, .workers = 2, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  job.Start(PsTask(0));
  job.Start(kChiefTask);
  job.Start(WorkerTask(0), {"--batch_size=7"});
  job.ExpectExit(WorkerTask(0), kPermanent);
  const std::string log = job.Log(WorkerTask(0));
  const std::string ours = ConfigHashIn(log);
  const std::string theirs = ConfigHashIn(job.Log(kChiefTask));
  EXPECT_NE(ours, theirs);
  ExpectOneError({kPermanent, log}, kPermanent, {ours, theirs, "worker-0"});
  EXPECT_FALSE(job.process(kChiefTask).Poll().has_value());
}

TEST(PeerErrorsTest, ServerWithAnotherConfiguration) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  job.Start(PsTask(0), {"--seed=77"});
  job.Start(kChiefTask);
  job.ExpectExit(kChiefTask, kPermanent);
  const std::string log = job.Log(kChiefTask);
  ExpectOneError({kPermanent, log}, kPermanent,
                 {ConfigHashIn(log), ConfigHashIn(job.Log(PsTask(0))), "ps-0"});
}

struct TextCase {
  const char* name;
  std::string text;
  std::vector<std::string> expected;
};

// How GoogleTest shows a case.
void PrintTo(const TextCase& c, std::ostream* out) { *out << c.name; }

std::string NameOf(const testing::TestParamInfo<TextCase>& info) { return info.param.name; }

TEST(RemovedWorkerTest, AsksForARestart) {
  ExpectOneError(RunProgram(Role::kWorker, FlagsFor(JobConfig(10)),
                            R"({"cluster":{"chief":["h:1"],"ps":["h:2"],"worker":["h:3"]},)"
                            R"("task":{"type":"worker","index":1}})"),
                 kTransient, {"TF_CONFIG: task.index: expected 0, found 1", "removed"});
}

class TfConfigErrorsTest : public testing::TestWithParam<TextCase> {};

TEST_P(TfConfigErrorsTest, ExitsWithOneLine) {
  ExpectOneError(RunProgram(Role::kWorker, FlagsFor(JobConfig(10)), GetParam().text), kPermanent,
                 GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TfConfigErrorsTest,
    testing::Values(TextCase{"NotJson", "{cluster}", {"TF_CONFIG"}},
                    TextCase{"AnotherRole",
                             R"({"cluster":{"chief":["h:1"],"ps":["h:2"],"worker":["h:3"]},)"
                             R"("task":{"type":"ps","index":0}})",
                             {"TF_CONFIG", "task.type", "ps"}},
                    TextCase{"NoServers",
                             R"({"cluster":{"worker":{"0":"h:3"},"ps":null},)"
                             R"("task":{"type":"worker","index":0}})",
                             {"ps", "lists its workers"}},
                    TextCase{"BadPort",
                             R"({"cluster":{"chief":["h:70000"],"ps":["h:2"],"worker":["h:3"]},)"
                             R"("task":{"type":"worker","index":0}})",
                             {"cluster.chief[0]", "h:70000"}},
                    TextCase{"Absent", "", {"TF_CONFIG", "--ps_hosts"}}),
    NameOf);

TEST(RankErrorsTest, ExitWithOneLine) {
  const std::map<std::string, std::string> variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "x"}};
  ExpectOneError(RunProgram("worker", FlagsFor(JobConfig(10)), variables, absl::Seconds(60)),
                 kPermanent, {"MASTER_PORT: expected 1..65535, found \"x\""});
}

TEST(RankErrorsTest, ATaskWhoseAddressFollowsAnnouncesNoHost) {
  const std::map<std::string, std::string> variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
  std::vector<std::string> flags = FlagsFor(JobConfig(10));
  flags.push_back("--announce_host=node1");
  ExpectOneError(RunProgram("worker", flags, variables, absl::Seconds(60)), kPermanent,
                 {"--announce_host: expected none, since the cluster gives this task's address, "
                  "found \"node1\""});
}

struct ConfigCase {
  const char* name;
  const char* line;  // of the configuration
  const char* instead;
  std::vector<std::string> expected;
};

void PrintTo(const ConfigCase& c, std::ostream* out) { *out << c.name; }

class ConfigErrorsTest : public testing::TestWithParam<ConfigCase> {};

TEST_P(ConfigErrorsTest, ExitsWithOneLine) {
  const std::string config =
      absl::StrReplaceAll(JobConfig(10), {{GetParam().line, GetParam().instead}});
  ASSERT_NE(config, JobConfig(10));
  ExpectOneError(RunProgram(Role::kChief, FlagsFor(config)), kPermanent, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ConfigErrorsTest,
    testing::Values(
        ConfigCase{"UnknownField", "batch_size", "batch_sise", {"config.textproto:", "batch_sise"}},
        ConfigCase{"Syntax", "optimizer {", "optimizer {{", {"config.textproto:"}},
        ConfigCase{"NegativeSize", "batch_size: 32", "batch_size: -3", {"train.batch_size", "-3"}},
        ConfigCase{"NegativeUnits", "units: 128", "units: -1", {"model.layers[1]", "-1"}},
        ConfigCase{"ShapeMismatch",
                   "layers { relu {} }",
                   "layers { conv2d { filters: 2 kernel_size: 3 } }",
                   {"model.layers[2]"}}),
    [](const auto& info) { return info.param.name; });

class FlagErrorsTest : public testing::TestWithParam<TextCase> {};

TEST_P(FlagErrorsTest, EveryRoleExitsWithOneLine) {
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    ExpectOneError(RunProgram(role, {GetParam().text}), kPermanent, GetParam().expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FlagErrorsTest,
    testing::Values(TextCase{"Unknown", "--no_such_flag=1", {"--no_such_flag"}},
                    TextCase{"NotANumber", "--batch_size=many", {"--batch_size", "many"}}),
    NameOf);

TEST(FileErrorsTest, MissingConfigurationFile) {
  ExpectOneError(RunProgram(Role::kChief, {"--config=/no/such/file"}), kPermanent,
                 {"/no/such/file"});
}

TEST(FileErrorsTest, NoModelDirectory) {
  ExpectOneError(RunProgram(Role::kChief, {}), kPermanent, {"--model_dir"});
}

TEST(FileErrorsTest, ModelDirectoryThatCannotBeMade) {
  std::vector<std::string> flags = FlagsFor(JobConfig(10));
  const std::string file = JoinPath(FreshDirectory(), "file");
  WriteTestFile(file, "");
  for (const std::string& model_dir : {JoinPath(file, "model"), std::string("/proc/keelson")}) {
    flags.back() = "--model_dir=" + model_dir;
    ExpectOneError(RunProgram(Role::kChief, flags), kPermanent, {model_dir});
  }
}

TEST(FileErrorsTest, AStepBoundOfMoreThanAWeek) {
  for (const char* seconds : {"-1", "604801", "99999999999"}) {
    ExpectOneError(RunProgram(Role::kWorker, {absl::StrCat("--step_bound=", seconds)}), kPermanent,
                   {"--step_bound", seconds, "0 to 604800"});
  }
}

TEST(FileErrorsTest, NegativeBatchSizeByFlag) {
  ExpectOneError(RunProgram(Role::kChief, {"--batch_size=-3", "--model_dir=/tmp"}), kPermanent,
                 {"train.batch_size", "-3"});
}

TEST(FileErrorsTest, UnknownDevice) {
  std::vector<std::string> flags = FlagsFor(JobConfig(10));
  flags.push_back("--device=abacus");
  ExpectOneError(RunProgram(Role::kChief, flags), kPermanent, {"abacus"});
}

TEST(FileErrorsTest, TokenThatCannotBeUsed) {
  std::vector<std::string> flags = FlagsFor(JobConfig(10));
  flags.push_back("--auth_token_file=/no/such/token");
  ExpectOneError(RunProgram(Role::kChief, flags), kPermanent,
                 {"/no/such/token", "expected a cluster"});
  for (const char* hosts :
       {"--chief_hosts=localhost:1", "--ps_hosts=localhost:2", "--worker_hosts=localhost:3"}) {
    flags.push_back(hosts);
  }
  ExpectOneError(RunProgram(Role::kChief, flags), kPermanent,
                 {"--auth_token_file /no/such/token", "No such file"});
}

}  // namespace
}  // namespace keelson
