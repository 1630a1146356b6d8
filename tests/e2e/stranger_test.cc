// Somebody who reaches all ports and has no secret changes nothing.

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/rpc/access.h"
#include "core/rpc/channel.h"
#include "core/rpc/raw_client.h"
#include "keelson/v1/parameter_service.pb.h"
#include "tests/e2e/failure_testing.h"
#include "tests/support/job.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kAnswerLimit = absl::Seconds(20);

// What the server answers to a message of these bytes.
grpc::StatusCode Call(const std::string& address, const Claim& claim, const std::string& method,
                      const std::string& message) {
  RawCallQueue calls(claim);
  ByteRope request;
  request.AppendCopy(message);
  calls.Start(CreateChannel(address, grpc::InsecureChannelCredentials()), method,
              std::move(request), kAnswerLimit, 1);
  const auto done = calls.Next(kAnswerLimit);
  return done.has_value() ? done->status.error_code() : grpc::StatusCode::DEADLINE_EXCEEDED;
}

bool IsOpen(const AccessRow& row) { return row.allowed[0] == CallerKind::kStranger; }

TEST(StrangerTest, CallsNothingUnderAnyRole) {
  PacedJob paced({.max_steps = 1500, .save_steps = 500});
  paced.StartAndWatch(40);
  const std::string noise(100000, '\x0a');  // fields within fields
  for (const AccessRow& row : AccessTable()) {
    const std::string method(row.method);
    const bool of_chief = absl::StrContains(method, "ChiefService");
    const std::string address = paced.job.Address(of_chief ? kChiefTask : PsTask(0));
    for (const char* role : {"chief", "worker", "evaluator", "operator", ""}) {
      for (const char* token : {"", "a-token-that-somebody-guessed"}) {
        for (const std::string& message : {std::string(), noise}) {
          if (IsOpen(row)) continue;
          EXPECT_EQ(Call(address, {role, token, token}, method, message),
                    grpc::StatusCode::PERMISSION_DENIED)
              << method << " as \"" << role << "\" with \"" << token << "\"";
          EXPECT_EQ(Call(address, {role, token, token, /*protocol=*/""}, method, message),
                    grpc::StatusCode::FAILED_PRECONDITION)
              << method << " without a protocol";
        }
      }
    }
  }
  EXPECT_EQ(Call(paced.job.Address(PsTask(0)), {}, "/keelson.v1.ParameterService/GetStatus", ""),
            grpc::StatusCode::OK);
  v1::GetShardStatusRequest with_job_state;
  with_job_state.set_with_job_state(true);
  EXPECT_EQ(Call(paced.job.Address(PsTask(0)), {"chief", "", ""},
                 "/keelson.v1.ParameterService/GetStatus", with_job_state.SerializeAsString()),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(paced.job.Address(PsTask(0)), {}, "/keelson.v1.ParameterService/Erase", ""),
            grpc::StatusCode::UNIMPLEMENTED);
  paced.Finish();
  paced.ExpectCounts(0);
  EXPECT_THAT(paced.job.Log(PsTask(0)), HasSubstr("refused Initialize of ipv4:127.0.0.1:"));
  EXPECT_THAT(paced.job.Log(kChiefTask), HasSubstr("refused "));
}

}  // namespace
}  // namespace keelson
