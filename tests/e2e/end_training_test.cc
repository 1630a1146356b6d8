// Training is ended before its last step, in each mode, and the chief is killed at that moment.
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/rpc/credentials.h"
#include "gmock/gmock.h"
#include "tests/e2e/failure_testing.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";
constexpr int64_t kEndEarly = 40;

class EndTrainingTest : public testing::TestWithParam<const char*> {
 protected:
  EndTrainingTest() : paced_({.max_steps = 20000, .save_steps = 5000, .mode = GetParam()}) {
    const std::string token_file = paced_.job.model_dir() + ".token";
    EXPECT_EQ(WriteFileAtomically(token_file, absl::StrCat(kToken, "\n")), absl::OkStatus());
    paced_.job.AddFlag(Role::kChief, "--auth_token_file=" + token_file);
  }

  absl::Status EndTraining(const std::string& token) {
    Credentials credentials;
    credentials.claim = {"operator", "", token};
    const auto chief = ConnectChiefService(paced_.job.Address(kChiefTask), credentials);
    v1::EndTrainingRequest request;
    request.set_reason("good enough");
    v1::EndTrainingResponse response;
    return chief->EndTraining(request, &response);
  }
  // All have ended with 0; the newest snapshot is that of the marker's step, and every server has
  // applied every step once. Returns the step.
  int64_t ExpectWholeEnd() {
    paced_.Finish();
    const absl::StatusOr<int64_t> step = DoneStep(paced_.job.model_dir());
    EXPECT_TRUE(step.ok()) << step.status();
    const auto snapshot = ReadLatestCounted(paced_.job.model_dir());
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    if (!step.ok() || !snapshot.ok()) return -1;
    EXPECT_EQ(snapshot->global_step, *step);
    for (const int64_t updates : snapshot->updates) EXPECT_EQ(updates, *step);
    return *step;
  }

  PacedJob paced_;
};

TEST_P(EndTrainingTest, OutlivesTheChiefsDeathAndARestartOfAll) {
  paced_.StartAndWatch(kEndEarly);
  EXPECT_EQ(EndTraining("").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(EndTraining("fedcba9876543210").code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(EndTraining(kToken), absl::OkStatus());
  paced_.job.Kill(kChiefTask);
  paced_.job.Start(kChiefTask);
  const int64_t step = ExpectWholeEnd();
  EXPECT_GE(step, kEndEarly);
  EXPECT_LT(step, paced_.counting.max_steps);
  const std::string log = paced_.job.Log(kChiefTask);
  EXPECT_THAT(log, HasSubstr(absl::StrCat("ended early at step ", step, " of 20000: good enough")));
  paced_.job.StartAll();
  EXPECT_EQ(ExpectWholeEnd(), step);
  EXPECT_THAT(paced_.job.Log(WorkerTask(0)), HasSubstr(absl::StrCat("done at step ", step)));
}

INSTANTIATE_TEST_SUITE_P(Modes, EndTrainingTest,
                         testing::Values("async {}", "bounded_staleness { staleness: 4 }",
                                         "synchronous { replicas_to_aggregate: 2 }"));

}  // namespace
}  // namespace keelson
