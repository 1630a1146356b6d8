#include "chief/proposal/proposal_refusal.h"

#include "core/base/thread.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

v1::ProposeJobRequest Of(uint64_t id) {
  v1::ProposeJobRequest request;
  request.set_proposal_id(id);
  return request;
}

TEST(ProposalRefusalTest, TellsEachScriptWhy) {
  ProposalRefusal refusal("w: expected shape [2], found [1]", Clock::Real());
  EXPECT_FALSE(refusal.AwaitTold(1, absl::ZeroDuration()));
  Thread scripts([&] {
    for (const uint64_t id : {7, 7, 8}) {
      EXPECT_EQ(refusal.Propose(Of(id)),
                absl::FailedPreconditionError(
                    "the chief has given up: w: expected shape [2], found [1]"));
    }
  });
  EXPECT_TRUE(refusal.AwaitTold(2, absl::InfiniteDuration()));
  scripts.Join();
  EXPECT_FALSE(refusal.AwaitTold(3, absl::ZeroDuration())) << "one has asked twice";
}

}  // namespace
}  // namespace keelson
