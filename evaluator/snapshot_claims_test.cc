#include "evaluator/snapshot_claims.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotClaimsTest : public testing::Test {
 protected:
  SnapshotClaims Of(const std::string& holder) {
    // Not renewed while a test moves the clock.
    return SnapshotClaims(directory_, holder, &clock_, FileSystem::Real(), absl::Hours(1));
  }
  std::vector<std::string> Files() const { return *ListDirectory(directory_); }

  const std::string directory_ = FreshDirectory() + "/claims";
  ManualClock clock_;
  SnapshotClaims mine_ = Of("evaluator-0");
  SnapshotClaims others_ = Of("evaluator-1");
};

TEST_F(SnapshotClaimsTest, OneAtATime) {
  auto claim = mine_.Take(100);
  ASSERT_TRUE(claim.ok()) << claim.status();
  const absl::Status refused = others_.Take(100).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("step 100 is being scored by evaluator-0"));
  EXPECT_TRUE(others_.Take(200).ok());
  claim->reset();
  EXPECT_TRUE(others_.Take(100).ok());
}

TEST_F(SnapshotClaimsTest, TellsWhatOthersHold) {
  EXPECT_THAT(*mine_.HeldByOthers(), IsEmpty()) << "there is no directory";
  const auto claim = others_.Take(100);
  clock_.Advance(absl::Seconds(5));
  const auto held = mine_.HeldByOthers();
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->size(), 1u);
  EXPECT_EQ(held->at(100).holder, "evaluator-1");
  EXPECT_EQ(held->at(100).begun, clock_.Now() - absl::Seconds(5));
  EXPECT_EQ(held->at(100).expires, held->at(100).begun + SnapshotClaim::kDuration);
  EXPECT_THAT(*others_.HeldByOthers(), IsEmpty());
}

TEST_F(SnapshotClaimsTest, ADeadEvaluatorsClaimIsTakenOver) {
  auto dead = others_.Take(100);
  ASSERT_TRUE(dead.ok());
  clock_.Advance(SnapshotClaim::kDuration);
  EXPECT_THAT(*mine_.HeldByOthers(), IsEmpty());
  auto claim = mine_.Take(100);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_TRUE(absl::IsAlreadyExists(others_.Take(100).status())) << "it is mine now";
  // The evaluator whose claim had expired does not release the new one.
  dead->reset();
  EXPECT_TRUE(absl::IsAlreadyExists(others_.Take(100).status()));
  claim->reset();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(SnapshotClaimsTest, AnEarlierLifeOfTheTaskBindsNobodyOfIt) {
  const auto earlier = Of("evaluator-0").Take(100);
  EXPECT_TRUE(mine_.Take(100).ok());
}

TEST_F(SnapshotClaimsTest, AClaimIsRenewedWhileItIsHeld) {
  const auto claim =
      SnapshotClaims(directory_, "evaluator-1", &clock_, FileSystem::Real(), absl::Milliseconds(1))
          .Take(100);
  ASSERT_TRUE(claim.ok());
  const absl::Time begun = clock_.Now();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(SnapshotClaim::kDuration / 2);
    const absl::Time until = clock_.Now() + SnapshotClaim::kDuration;
    while (true) {
      const auto held = mine_.HeldByOthers();
      ASSERT_TRUE(held.ok());
      if (held->count(100) > 0 && held->at(100).expires == until) break;
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(mine_.HeldByOthers()->at(100).begun, begun);
}

TEST_F(SnapshotClaimsTest, OfManyExactlyOneGetsIt) {
  constexpr int kEvaluators = 8;
  std::vector<std::unique_ptr<SnapshotClaim>> claims(kEvaluators);
  std::vector<std::thread> threads;
  for (int e = 0; e < kEvaluators; ++e) {
    threads.emplace_back([&, e] {
      auto claim = Of("evaluator-" + std::to_string(e)).Take(100);
      if (claim.ok()) claims[e] = *std::move(claim);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int taken = 0;
  for (const auto& claim : claims) taken += claim != nullptr;
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(SnapshotClaimsTest, AFileThatIsNoClaimBindsForAWhile) {
  ASSERT_TRUE(CreateDirectories(directory_).ok());
  WriteRawFile(directory_ + "/100.1", "");
  WriteRawFile(directory_ + "/notes.txt", "mine");
  WriteRawFile(directory_ + "/200.tempstate1", "{");
  // Its time is the file system's.
  clock_.Advance(absl::Now() - clock_.Now());
  EXPECT_TRUE(absl::IsAlreadyExists(mine_.Take(100).status()));
  EXPECT_TRUE(mine_.Take(200).ok());
  clock_.Advance(2 * SnapshotClaim::kDuration);
  EXPECT_TRUE(mine_.Take(100).ok());
}

TEST_F(SnapshotClaimsTest, RemovesWhatIsStale) {
  auto earlier = Of("evaluator-0").Take(100);
  auto held = others_.Take(200);
  auto dead = Of("evaluator-2").Take(300);
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(mine_.RemoveStale().ok());
  EXPECT_THAT(Files(), ::testing::UnorderedElementsAre("200.1", "300.1"));
  clock_.Advance(2 * SnapshotClaim::kDuration);
  held = others_.Take(400);
  ASSERT_TRUE(mine_.RemoveStale().ok());
  EXPECT_THAT(Files(), ElementsAre("400.1"));
}

TEST_F(SnapshotClaimsTest, ADirectoryThatCannotBeMadeIsAnError) {
  const std::string file = FreshDirectory() + "/file";
  WriteRawFile(file, "");
  SnapshotClaims claims(file + "/claims", "evaluator-0", &clock_);
  const absl::Status status = claims.Take(100).status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(file));
}

TEST_F(SnapshotClaimsTest, AClaimThatIsTooLargeOrAPipeIsSomebodysUntilItExpires) {
  ASSERT_TRUE(CreateDirectories(directory_).ok());
  const std::string claim =
      R"({"begun":"2100-01-01T00:00:00Z","expires":"2100-01-01T00:00:00Z","holder":"x","id":1})";
  WriteRawFile(directory_ + "/100.1", claim + std::string(65536 - claim.size(), ' '));
  WriteRawFile(directory_ + "/200.1", claim + std::string(65537 - claim.size(), ' '));
  WriteRawFile(directory_ + "/300.1", claim);
  ASSERT_EQ(truncate((directory_ + "/300.1").c_str(), off_t{1} << 40), 0);
  ASSERT_EQ(mkfifo((directory_ + "/400.1").c_str(), 0600), 0);
  // The files' times are those of the real clock.
  clock_.Advance(absl::Now() - clock_.Now());
  const auto held = mine_.HeldByOthers();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->at(100).holder, "x");
  for (const int64_t step : {200, 300, 400}) EXPECT_EQ(held->at(step).holder, "somebody") << step;
  clock_.Advance(2 * SnapshotClaim::kDuration);
  for (const int64_t step : {200, 300, 400}) EXPECT_TRUE(mine_.Take(step).ok()) << step;
}

}  // namespace
}  // namespace keelson
