#include "bench/bare_parameter_service.h"

#include <string>

#include "bench/load_client.h"
#include "bench/message_client.h"
#include "bench/message_source.h"
#include "gmock/gmock.h"

namespace keelson::bench {
namespace {

using OnPush = BareParameterService::OnPush;

// One array of four messages on one shard.
LoadPlan SmallPlan() {
  LoadPlan plan;
  plan.scenario.model = "flat";
  plan.scenario.message_bytes = 1024;
  plan.placement = Placement::Compute({{"flat", Shape({4, 256}), {}}}, 1, 256);
  plan.formats.resize(1);
  return plan;
}

void Initialize(const LoadPlan& plan, ParameterControl* service) {
  v1::InitializeShardRequest request;
  *request.mutable_placement() = plan.placement.ToProto();
  *request.mutable_members() = AllClients();
  v1::InitializeShardResponse response;
  ASSERT_TRUE(service->Initialize(request, &response).ok());
}

std::string AnswerTo(BulkMethod method, ByteRope request, BulkHandler* service) {
  const absl::StatusOr<ByteRope> response = service->Bulk(method, std::move(request));
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->ToString() : "";
}

// The value of the first element.
float FirstValue(const LoadPlan& plan, BulkHandler* service) {
  const std::string answer =
      AnswerTo(BulkMethod::kPull, MakePullSource(plan)->Request(0, 0), service);
  float value = 0;
  if (answer.size() >= 1024)
    std::memcpy(&value, answer.data() + answer.size() - 1024, sizeof(value));
  return value;
}

TEST(BareParameterServiceTest, SumAddsGradients) {
  const LoadPlan plan = SmallPlan();
  BareParameterService service(OnPush::kSum);
  Initialize(plan, &service);
  const auto source = MakePushSource(plan);
  for (int i = 0; i < 3; ++i) AnswerTo(BulkMethod::kPush, source->Request(0, 0), &service);
  EXPECT_FLOAT_EQ(FirstValue(plan, &service), 3e-3f);
}

TEST(BareParameterServiceTest, DiscardChangesNothing) {
  const LoadPlan plan = SmallPlan();
  BareParameterService service(OnPush::kDiscard);
  Initialize(plan, &service);
  AnswerTo(BulkMethod::kPush, MakePushSource(plan)->Request(0, 0), &service);
  EXPECT_EQ(FirstValue(plan, &service), 0);
}

TEST(BareParameterServiceTest, DiscardAnswersAFusedPushWithValues) {
  const LoadPlan plan = SmallPlan();
  BareParameterService service(OnPush::kDiscard);
  Initialize(plan, &service);
  EXPECT_GT(AnswerTo(BulkMethod::kPushPull, MakePushSource(plan)->Request(0, 0), &service).size(),
            1024);
}

TEST(BareParameterServiceTest, DiscardTakesWhatIsNoBlock) {
  const LoadPlan plan = SmallPlan();
  BareParameterService service(OnPush::kDiscard);
  Initialize(plan, &service);
  const auto source = MakeKeyValueSource(plan);
  EXPECT_EQ(source->pushed_bytes(0, 0), 1020);  // 85 pairs
  AnswerTo(BulkMethod::kPush, source->Request(0, 0), &service);
}

TEST(BareParameterServiceTest, NothingBeforeInitialize) {
  BareParameterService service(OnPush::kSum);
  EXPECT_EQ(service.Bulk(BulkMethod::kPull, ByteRope()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(BareParameterServiceTest, MalformedRequestIsRefused) {
  BareParameterService service(OnPush::kDiscard);
  Initialize(SmallPlan(), &service);
  ByteRope request;
  request.AppendCopy("\xff");
  EXPECT_EQ(service.Bulk(BulkMethod::kPush, std::move(request)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MessageClientTest, WorksUntilTheWindowIsOver) {
  const LoadPlan plan = SmallPlan();
  for (const bool pull : {false, true}) {
    BareParameterService service(OnPush::kSum);
    Initialize(plan, &service);
    MessageClient client(pull ? MakePullSource(plan) : MakePushSource(plan),
                         std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{&service}),
                         /*in_flight=*/3);
    // Over before it begins: an operation to start the clock, and one that is counted.
    const double now = MonotonicSeconds();
    const absl::StatusOr<ClientReport> report = client.Run({now, now, now});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->latencies.count(), 1);
    EXPECT_GT(pull ? report->clients[0].pulled_bytes : report->clients[0].pushed_bytes, 0);
    EXPECT_EQ(pull ? report->clients[0].pushed_bytes : report->clients[0].pulled_bytes, 0);
  }
}

TEST(MessageClientTest, ReportsTheServersError) {
  const LoadPlan plan = SmallPlan();
  BareParameterService service(OnPush::kSum);  // not initialised
  MessageClient client(MakePullSource(plan),
                       std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{&service}),
                       /*in_flight=*/1);
  EXPECT_THAT(std::string(client.Run({0, 0, 0}).status().message()),
              testing::HasSubstr("not initialised"));
}

}  // namespace
}  // namespace keelson::bench
