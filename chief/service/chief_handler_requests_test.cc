// GetModel and AcquireWork of callers that do not wait in the call.
#include <cstdint>
#include <optional>

#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "chief/service/chief_handler.h"
#include "core/cluster/task_proto.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class ChiefHandlerRequestsTest : public testing::Test {
 protected:
  ChiefHandlerRequestsTest() {
    EXPECT_TRUE(coordinator_.members()->Register(kWorker0, TestId(7), kHash, "host:1").ok());
  }
  template <typename Request>
  static Request RequestOf(uint64_t incarnation) {
    Request request;
    *request.mutable_header()->mutable_task() = TaskToProto(kWorker0);
    SetMembershipId(TestId(incarnation), request.mutable_header());
    request.mutable_max_wait()->set_seconds(10);
    return request;
  }
  // The call, whose answer goes to `model_` or `work_`.
  ChiefHandler::Cancel GetModel(uint64_t incarnation) {
    return handler_.BeginGetModel(RequestOf<v1::GetModelRequest>(incarnation),
                                  [this](const absl::StatusOr<v1::GetModelResponse>& model) {
                                    model_ = model;
                                    Count();
                                  });
  }
  ChiefHandler::Cancel AcquireWork(uint64_t incarnation) {
    return handler_.BeginAcquireWork(RequestOf<v1::AcquireWorkRequest>(incarnation),
                                     [this](const absl::StatusOr<v1::AcquireWorkResponse>& work) {
                                       work_ = work;
                                       Count();
                                     });
  }
  void StartTraining() {
    WorkOptions work;
    work.max_steps = 10;
    work.num_records = 25;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({Placement(), {"a:1", "b:2"}, 25}, WorkLedger(work));
  }
  void Count() {
    if (++answers_ == 2) both_answered_.Raise();
  }

  ManualClock clock_;
  Coordinator coordinator_{{kHash, absl::Seconds(10)}, &clock_};
  ChiefHandler handler_{&coordinator_};
  int answers_ = 0;
  StopSignal both_answered_;
  std::optional<absl::StatusOr<v1::GetModelResponse>> model_;
  std::optional<absl::StatusOr<v1::AcquireWorkResponse>> work_;
};

TEST_F(ChiefHandlerRequestsTest, WhatIsThereIsAnsweredAtOnce) {
  StartTraining();
  EXPECT_EQ(GetModel(7), nullptr);
  ASSERT_TRUE(model_.has_value() && model_->ok());
  EXPECT_EQ((*model_)->ps_addresses_size(), 2);
  EXPECT_EQ((*model_)->train_records(), 25);
  EXPECT_EQ(AcquireWork(7), nullptr);
  ASSERT_TRUE(work_.has_value() && work_->ok());
  EXPECT_EQ((*work_)->tickets_size(), 1);
  EXPECT_EQ((*work_)->phase(), v1::TRAINING);
}

TEST_F(ChiefHandlerRequestsTest, ARefusalIsAnsweredAtOnce) {
  EXPECT_EQ(GetModel(8), nullptr);
  ASSERT_TRUE(model_.has_value());
  EXPECT_EQ(model_->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(AcquireWork(8), nullptr);
  ASSERT_TRUE(work_.has_value());
  EXPECT_EQ(work_->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(handler_.BeginGetModel({}, [this](const auto& model) { model_ = model; }), nullptr);
  EXPECT_EQ(model_->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(handler_.BeginAcquireWork({}, [this](const auto& work) { work_ = work; }), nullptr);
  EXPECT_EQ(work_->status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ChiefHandlerRequestsTest, WhatIsNotThereYetIsAnsweredLater) {
  const ChiefHandler::Cancel model = GetModel(7);
  const ChiefHandler::Cancel work = AcquireWork(7);
  ASSERT_TRUE(model != nullptr && work != nullptr);
  EXPECT_FALSE(model_.has_value() || work_.has_value());
  StartTraining();
  handler_.AnswerWaiting(both_answered_);
  ASSERT_TRUE(model_.has_value() && model_->ok());
  EXPECT_EQ((*model_)->ps_addresses_size(), 2);
  ASSERT_TRUE(work_.has_value() && work_->ok());
  EXPECT_EQ((*work_)->tickets_size(), 1);
}

TEST_F(ChiefHandlerRequestsTest, TheWaitOfACallerThatIsGoneIsCancelledOnce) {
  const ChiefHandler::Cancel cancel = AcquireWork(7);
  ASSERT_NE(cancel, nullptr);
  cancel();
  ASSERT_TRUE(work_.has_value());
  EXPECT_EQ(work_->status().code(), absl::StatusCode::kCancelled);
  work_.reset();
  cancel();
  EXPECT_FALSE(work_.has_value()) << "it was answered";
  clock_.Advance(absl::Seconds(10));
  coordinator_.roster()->ExpireLeases();
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker)) << "nobody renews the lease";
}

}  // namespace
}  // namespace keelson
