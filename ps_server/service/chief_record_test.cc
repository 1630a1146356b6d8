#include "ps_server/service/chief_record.h"

#include <gtest/gtest.h>

#include <string>

namespace keelson {
namespace {

v1::ChiefHeartbeatRequest Heartbeat(uint64_t term, uint64_t version, const std::string& state) {
  v1::ChiefHeartbeatRequest request;
  request.mutable_header()->set_chief_term(term);
  request.set_job_state_version(version);
  request.set_job_state(state);
  return request;
}

std::string StateOf(const ChiefRecord& record) {
  v1::ShardStatus status;
  record.FillJobState(&status);
  return status.job_state();
}

TEST(ChiefRecordTest, TheAddressStaysUntilAnotherIsGiven) {
  ChiefRecord record;
  EXPECT_EQ(record.address(), "");
  v1::ChiefHeartbeatRequest request;
  request.set_chief_address("chief:2222");
  record.Take(request);
  record.Take(v1::ChiefHeartbeatRequest());
  EXPECT_EQ(record.address(), "chief:2222");
}

TEST(ChiefRecordTest, AnOlderVersionOfTheSameTermIsNotTaken) {
  ChiefRecord record;
  record.Take(Heartbeat(3, 7, "newer"));
  record.Take(Heartbeat(3, 6, "older"));
  EXPECT_EQ(StateOf(record), "newer");
  EXPECT_EQ(record.state_version(), 7u);
}

TEST(ChiefRecordTest, AHigherTermCountsMoreThanAHigherVersion) {
  ChiefRecord record;
  record.Take(Heartbeat(3, 7, "of the chief that was replaced"));
  record.Take(Heartbeat(4, 1, "of its successor"));
  record.Take(Heartbeat(3, 8, "late"));
  EXPECT_EQ(StateOf(record), "of its successor");
}

TEST(ChiefRecordTest, AHeartbeatWithoutAStateLeavesTheOneThatIsThere) {
  ChiefRecord record;
  record.Take(Heartbeat(3, 7, "state"));
  record.Take(Heartbeat(4, 9, ""));
  EXPECT_EQ(StateOf(record), "state");
}

}  // namespace
}  // namespace keelson
