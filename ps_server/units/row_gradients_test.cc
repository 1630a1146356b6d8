// Each row of a push gets its own gradient, whichever of the others are gone, new or refused.
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

// What a push of OwnGradient adds to a row. All of an id's neighbours in a message have others.
float Added(uint64_t id) { return static_cast<float>(id + 2); }
float OwnGradient(uint64_t id) { return -Added(id); }

TableSpec Limits(int64_t max_rows, bool evict, int64_t expire_after, int64_t admit_after) {
  TableSpec spec;
  spec.max_rows = max_rows;
  spec.evict = evict;
  spec.expire_after_steps = expire_after;
  spec.admit_after = admit_after;
  return spec;
}

class ExpiredRowGradientsTest : public OneTableTest {
 protected:
  ExpiredRowGradientsTest() : OneTableTest(Limits(0, false, 8, 0)) {}
};

// Every third row expires after the pull of the ids and before their push.
TEST_F(ExpiredRowGradientsTest, ARowThatExpiredSinceItsPullIsMadeAnew) {
  const std::vector<uint64_t> all = IdsFrom(0, 3000);
  std::vector<uint64_t> others;
  for (const uint64_t id : all) {
    if (id % 3 != 0) others.push_back(id);
  }
  Push(0, all);
  EXPECT_EQ(Read(all).size(), all.size());
  for (int64_t step = 1; step < 10; ++step) PushAndSweep(step, others);
  PushEach(10, all, OwnGradient);
  const std::map<uint64_t, float> rows = Read(all);
  EXPECT_EQ(rows.size(), all.size());
  for (const auto& [id, value] : rows) EXPECT_EQ(value, (id % 3 == 0 ? 0 : 10) + Added(id)) << id;
}

class EvictedRowGradientsTest : public OneTableTest {
 protected:
  EvictedRowGradientsTest() : OneTableTest(Limits(8 * kRowPartitions, true, 0, 0)) {}
};

TEST_F(EvictedRowGradientsTest, ARowThatWasEvictedSinceItsPullIsMadeAnew) {
  const std::vector<uint64_t> all = IdsFrom(0, 1000);
  Push(0, all);
  for (int64_t step = 1; step < 3; ++step) {
    const auto first = static_cast<uint64_t>(step) * 10'000;
    Push(step, IdsFrom(first, first + 1000));
  }
  const std::map<uint64_t, float> before = Read(all);
  EXPECT_GT(before.size(), 10);
  EXPECT_LT(before.size(), 900);
  PushEach(3, all, OwnGradient);
  const std::map<uint64_t, float> rows = Read(all);
  EXPECT_GT(rows.size(), 950);
  for (const auto& [id, value] : rows) {
    EXPECT_EQ(value, (before.contains(id) ? 1 : 0) + Added(id)) << id;
  }
}

class RefusedRowGradientsTest : public OneTableTest {
 protected:
  RefusedRowGradientsTest() : OneTableTest(Limits(4 * kRowPartitions, false, 0, 0)) {}
};

TEST_F(RefusedRowGradientsTest, ARowThatIsRefusedTakesNoneOfTheOthers) {
  std::vector<uint64_t> some;
  for (uint64_t id = 0; id < 2000; id += 5) some.push_back(id);
  Push(0, some);
  const std::map<uint64_t, float> before = Read(some);
  const std::vector<uint64_t> all = IdsFrom(0, 2000);
  PushEach(1, all, OwnGradient);
  EXPECT_GT(Size().refused_rows, 900);
  const std::map<uint64_t, float> rows = Read(all);
  EXPECT_GT(rows.size(), 900);
  for (const auto& [id, value] : rows) {
    EXPECT_EQ(value, (before.contains(id) ? 1 : 0) + Added(id)) << id;
  }
}

class AdmittedRowGradientsTest : public OneTableTest {
 protected:
  AdmittedRowGradientsTest() : OneTableTest(Limits(0, false, 0, 3)) {}
};

TEST_F(AdmittedRowGradientsTest, AnIdThatIsOnlyCountedTakesNoneOfTheOthers) {
  // Of every third id the third push is this one; the others are known, or new.
  const std::vector<uint64_t> all = IdsFrom(0, 9000);
  std::vector<uint64_t> known, second;
  for (const uint64_t id : all) {
    if (id % 3 == 0) known.push_back(id);
    if (id % 3 == 1) second.push_back(id);
  }
  for (int64_t step = 0; step < 3; ++step) Push(step, known);
  for (int64_t step = 3; step < 5; ++step) Push(step, second);
  PushEach(5, all, OwnGradient);
  const std::map<uint64_t, float> rows = Read(all);
  EXPECT_EQ(rows.size(), 6000);
  for (const auto& [id, value] : rows) EXPECT_EQ(value, (id % 3 == 0 ? 1 : 0) + Added(id)) << id;
}

}  // namespace
}  // namespace keelson
