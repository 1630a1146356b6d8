#include "core/rpc/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/clock.h"
#include "core/rpc/protocol.h"
#include "grpc/health/v1/health.pb.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJobToken[] = "0123456789abcdef-of-the-job";
constexpr char kAuthToken[] = "0123456789abcdef-of-operators";
constexpr char kPushCall[] = "/keelson.v1.ParameterService/Push";
constexpr char kFinish[] = "/keelson.v1.ParameterService/Finish";
constexpr char kSetMode[] = "/keelson.v1.ChiefService/SetMode";
constexpr char kEndTraining[] = "/keelson.v1.ChiefService/EndTraining";
constexpr char kSaveSnapshot[] = "/keelson.v1.ChiefService/SaveSnapshot";

Caller CallerWith(absl::string_view role, absl::string_view job_token = "",
                  absl::string_view authorization = "") {
  return {role, job_token, authorization, "ipv4:10.0.0.7:40210", kProtocol};
}

void AddMethods(const google::protobuf::FileDescriptor* file, std::multiset<std::string>* names) {
  for (int s = 0; s < file->service_count(); ++s) {
    const google::protobuf::ServiceDescriptor* service = file->service(s);
    for (int m = 0; m < service->method_count(); ++m) {
      names->insert(absl::StrCat("/", service->full_name(), "/", service->method(m)->name()));
    }
  }
}

TEST(AccessTableTest, ListsEveryMethodOnce) {
  std::multiset<std::string> methods;
  AddMethods(v1::JobStatus::descriptor()->file(), &methods);
  AddMethods(v1::PushRequest::descriptor()->file(), &methods);
  AddMethods(grpc::health::v1::HealthCheckRequest::descriptor()->file(), &methods);
  std::multiset<std::string> listed;
  for (const AccessRow& row : AccessTable()) listed.insert(std::string(row.method));
  EXPECT_EQ(listed, methods);
}

TEST(AccessGuardTest, RefusesWhatTheTableDoesNotList) {
  const AccessGuard guard({kJobToken, kAuthToken});
  for (const char* method : {"", "/", "/keelson.v1.ParameterService/Erase", "/a/Push", "Push"}) {
    EXPECT_EQ(guard.Check(method, CallerWith("chief", kJobToken)).status().code(),
              absl::StatusCode::kPermissionDenied)
        << method;
  }
}

TEST(AccessGuardTest, MembersCallWhatTheirRoleMay) {
  const AccessGuard guard({kJobToken, ""});
  for (const AccessRow& row : AccessTable()) {
    for (const char* role : {"chief", "ps", "worker", "evaluator", "", "root"}) {
      const absl::StatusOr<CallerKind> kind = guard.Check(row.method, CallerWith(role, kJobToken));
      const std::string text = absl::StrCat(row.method, " as \"", role, "\"");
      const bool open = row.allowed[0] == CallerKind::kStranger;
      const bool chief = role == std::string("chief") && row.allowed[0] == CallerKind::kChief;
      if (open || chief) {
        EXPECT_TRUE(kind.ok()) << text << ": " << kind.status();
      } else if (row.allowed[0] == CallerKind::kChief) {
        EXPECT_FALSE(kind.ok()) << text;
      }
    }
  }
  EXPECT_EQ(*guard.Check(kPushCall, CallerWith("worker", kJobToken)), CallerKind::kWorker);
  EXPECT_FALSE(guard.Check(kPushCall, CallerWith("evaluator", kJobToken)).ok());
  EXPECT_EQ(*guard.Check("/keelson.v1.ChiefService/Register", CallerWith("evaluator", kJobToken)),
            CallerKind::kEvaluator);
  EXPECT_THAT(std::string(guard.Check(kFinish, CallerWith("worker", kJobToken)).status().message()),
              HasSubstr("Finish: not for \"worker\""));
}

TEST(AccessGuardTest, MembersNeedTheJobTokenIfThereIsOne) {
  const AccessGuard guard({kJobToken, kAuthToken});
  const AccessGuard open;
  EXPECT_TRUE(open.Check(kPushCall, CallerWith("worker")).ok());
  EXPECT_TRUE(open.Check(kFinish, CallerWith("chief")).ok());
  EXPECT_FALSE(open.Check(kFinish, CallerWith("")).ok());
  const absl::Status none = guard.Check(kPushCall, CallerWith("worker")).status();
  EXPECT_THAT(std::string(none.message()), HasSubstr("(--job_token_file), the call has none"));
  for (const std::string& wrong :
       {std::string("0123456789abcdef-of-the-jo"), std::string(kAuthToken), std::string("x")}) {
    const absl::Status status = guard.Check(kPushCall, CallerWith("worker", wrong)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not that of the job"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(wrong)));
  }
  // The operators' token makes no member.
  EXPECT_FALSE(
      guard.Check(kPushCall, CallerWith("worker", "", absl::StrCat("Bearer ", kAuthToken))).ok());
}

TEST(AccessGuardTest, WithoutTokensTheModeIsOpenAndTheEndForEvaluators) {
  const AccessGuard open;
  EXPECT_EQ(*open.Check(kSetMode, CallerWith("")), CallerKind::kOperator);
  EXPECT_EQ(*open.Check(kEndTraining, CallerWith("evaluator")), CallerKind::kEvaluator);
  EXPECT_EQ(*open.Check(kEndTraining, CallerWith("worker")), CallerKind::kWorker);
  EXPECT_EQ(*open.Check(kSaveSnapshot, CallerWith("worker")), CallerKind::kWorker);
  for (const char* authorization : {"", "Bearer ", "Bearer anything"}) {
    const absl::Status status =
        open.Check(kEndTraining, CallerWith("operator", "", authorization)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr("needs --auth_token_file"));
  }
}

TEST(AccessGuardTest, WithATokenChangesNeedIt) {
  for (const AccessGuard::Secrets& secrets :
       {AccessGuard::Secrets{"", kAuthToken}, AccessGuard::Secrets{kJobToken, kAuthToken}}) {
    const AccessGuard guard(secrets);
    for (const char* method : {kSetMode, kEndTraining, kSaveSnapshot}) {
      const std::string bearer = absl::StrCat("Bearer ", kAuthToken);
      EXPECT_EQ(*guard.Check(method, CallerWith("operator", "", bearer)), CallerKind::kOperator);
      EXPECT_EQ(*guard.Check(method, CallerWith("evaluator", secrets.job_token, bearer)),
                CallerKind::kOperator);
      EXPECT_EQ(guard.Check(method, CallerWith("operator", kJobToken)).ok(),
                !secrets.job_token.empty());
      for (const std::string& wrong : {absl::StrCat(bearer, "0"), std::string("Bearer "),
                                       std::string(kAuthToken), std::string("bearer x")}) {
        const absl::Status status = guard.Check(method, CallerWith("operator", "", wrong)).status();
        EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << wrong;
        EXPECT_THAT(std::string(status.message()), HasSubstr("not that of the job"));
      }
      EXPECT_THAT(std::string(guard.Check(method, CallerWith("operator")).status().message()),
                  HasSubstr("the call has none"));
    }
  }
}

TEST(AccessGuardTest, ACallerOfAnotherBuildIsToldBothVersions) {
  for (const AccessGuard::Secrets& secrets :
       {AccessGuard::Secrets{}, AccessGuard::Secrets{kJobToken, kAuthToken}}) {
    const AccessGuard guard(secrets);
    for (const AccessRow& row : AccessTable()) {
      for (const char* protocol : {"", "0", "22", "2\n"}) {
        Caller caller = CallerWith("chief", kJobToken, absl::StrCat("Bearer ", kAuthToken));
        caller.protocol = protocol;
        const absl::Status status = guard.Check(row.method, caller).status();
        if (row.allowed[0] == CallerKind::kStranger) {
          EXPECT_TRUE(status.ok()) << row.method << ": " << status;
          continue;
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << row.method;
        EXPECT_THAT(
            std::string(status.message()),
            HasSubstr(absl::StrCat("the caller is of another build: expected message "
                                   "protocol ",
                                   kProtocol, ", found ", protocol[0] == '\0' ? "none" : "")));
      }
    }
  }
}

TEST(AccessGuardTest, AuditsEachRefusalAndSumsUpAFlood) {
  ManualClock clock;
  const AccessGuard guard({kJobToken, ""}, &clock);
  const auto refuse = [&](int times) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < times; ++i) {
      EXPECT_FALSE(guard.Check(kPushCall, CallerWith("worker\nE fake", "guess")).ok());
    }
    return testing::internal::GetCapturedStderr();
  };
  const std::string one = refuse(1);
  EXPECT_THAT(one, HasSubstr("refused Push of ipv4:10.0.0.7:40210 as worker?E?fake: "));
  EXPECT_THAT(one, Not(HasSubstr("guess")));
  const std::vector<std::string> flood = absl::StrSplit(refuse(1000), '\n', absl::SkipEmpty());
  EXPECT_EQ(flood.size(), 19);
  clock.Advance(absl::Seconds(1));
  EXPECT_THAT(refuse(1), HasSubstr("(and 981 calls before it)"));
}

}  // namespace
}  // namespace keelson
