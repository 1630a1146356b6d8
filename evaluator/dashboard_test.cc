#include "evaluator/dashboard.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/startup/http_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Dashboard> StartOrDie() {
  absl::StatusOr<std::unique_ptr<Dashboard>> dashboard = Dashboard::Start(0, "/model");
  EXPECT_TRUE(dashboard.ok()) << dashboard.status();
  return *std::move(dashboard);
}

HttpResponse Get(const Dashboard& dashboard, absl::string_view path) {
  const absl::StatusOr<HttpResponse> response = HttpRequest(dashboard.port(), "GET", path);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.value_or(HttpResponse());
}

EvaluationRecord Record(int64_t step, double loss) {
  return {step, absl::FromUnixSeconds(1'700'000'000), {{"loss", loss}}, 10, 0.5};
}

TEST(DashboardTest, ShowsWhatWasAddedSoFar) {
  const auto dashboard = StartOrDie();
  EXPECT_THAT(Get(*dashboard, "/").body, HasSubstr("No snapshot has been evaluated yet."));
  dashboard->Add(Record(100, 0.75));
  dashboard->Add(Record(100, 0.5));
  EXPECT_THAT(Get(*dashboard, "/").body, HasSubstr("<td class=\"best\">0.5</td>"));
  EXPECT_THAT(Get(*dashboard, "/").body, Not(HasSubstr("0.75")));
  const HttpResponse json = Get(*dashboard, "/api/v1/evaluations");
  EXPECT_EQ(json.body, EvaluationsAsJson("/model", {{100, Record(100, 0.5)}}));
  EXPECT_THAT(json.head, HasSubstr("Content-Type: application/json"));
}

TEST(DashboardTest, LetsABrowserDoNothingElse) {
  const auto dashboard = StartOrDie();
  const HttpResponse page = Get(*dashboard, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(page.head, HasSubstr("Content-Security-Policy: default-src 'none'; "));
  EXPECT_THAT(page.head, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(page.head, HasSubstr("Cache-Control: no-store"));
}

TEST(DashboardTest, AnswersProbesAndRefusesTheRest) {
  const auto dashboard = StartOrDie();
  EXPECT_EQ(Get(*dashboard, "/healthz").status, 200);
  EXPECT_EQ(Get(*dashboard, "/api/v1").status, 404);
  EXPECT_EQ(Get(*dashboard, "/../model").status, 404);
  EXPECT_EQ(HttpRequest(dashboard->port(), "POST", "/")->status, 405);
}

TEST(DashboardTest, ServesWhileRecordsCome) {
  const auto dashboard = StartOrDie();
  std::thread evaluator([&] {
    for (int64_t step = 1; step <= 200; ++step) dashboard->Add(Record(step, 1));
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Get(*dashboard, "/").status, 200);
  evaluator.join();
  EXPECT_THAT(Get(*dashboard, "/").body, HasSubstr("Snapshots evaluated: 200;"));
}

TEST(DashboardTest, NamesThePortThatIsInUse) {
  const auto dashboard = StartOrDie();
  const absl::Status status = Dashboard::Start(dashboard->port(), "/model").status();
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
  EXPECT_EQ(status.message(), absl::StrCat("--dashboard_port: cannot listen on port ",
                                           dashboard->port(), ": Address already in use"));
}

}  // namespace
}  // namespace keelson
