#include "core/client/plan/row_plan.h"

#include "core/table/row_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

class RowPlanTest : public testing::Test {
 protected:
  std::shared_ptr<const BatchIds> Batch(size_t ids) {
    std::vector<uint64_t> of_items(ids);
    for (size_t i = 0; i < ids; ++i) of_items[i] = i;
    const RowIds all = {ListOf(of_items, tables_[0].salt, {0, 256}).ids,
                        ListOf(of_items, tables_[1].salt, {0, 256}).ids};
    auto batch = BatchIds::Create(tables_, std::make_shared<RowIds>(all));
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *batch;
  }
  size_t RequestBytes(const BatchIds* applied, const BatchIds* wanted, RowPartitionRun run) {
    size_t bytes = 0;
    for (uint32_t p = run.first; p < run.first + run.count; ++p) {
      if (applied != nullptr) bytes += applied->BytesOf(p).ids + applied->BytesOf(p).gradients;
      if (wanted != nullptr) bytes += wanted->BytesOf(p).ids;
    }
    return bytes;
  }

  const Placement placement_ = Placement::Compute({}, 1, 1, {{"items", 64, {}}, {"users", 1, {}}});
  const std::vector<PlannedTable> tables_ = *PlanTables(placement_, 0, {});
};

TEST_F(RowPlanTest, AnAbsentRowHasItsInitialValuesOrZeros) {
  TableSpec spec = {"users", 2, {Initializer::Kind::kConstant, 3}};
  for (const bool zeros : {false, true}) {
    spec.absent_zeros = zeros;
    const auto tables = PlanTables(Placement::Compute({}, 1, 1, {spec}), 0, {});
    ASSERT_TRUE(tables.ok()) << tables.status();
    std::vector<float> row(2, -1);
    tables->front().absent.Fill(7, absl::MakeSpan(row));
    EXPECT_EQ(row, std::vector<float>(2, zeros ? 0 : 3));
  }
}

TEST_F(RowPlanTest, ABatchKnowsWhereItsPartitionsAre) {
  const auto batch = Batch(10000);
  for (size_t t = 0; t < 2; ++t) {
    size_t next = 0;
    for (uint32_t p = 0; p < 256; ++p) {
      EXPECT_EQ(batch->Begin(t, {p, 1}), next);
      for (const uint64_t id : batch->Ids(t, {p, 1})) {
        EXPECT_EQ(RowPartitionOf(MixId(id, tables_[t].salt)), p);
      }
      EXPECT_THAT(batch->Counts(t, {p, 1}), ElementsAre(batch->Ids(t, {p, 1}).size()));
      next = batch->End(t, {p, 1});
    }
    EXPECT_EQ(next, 10000u);
    EXPECT_EQ(batch->Ids(t, {0, 256}).size(), 10000u);
  }
}

TEST_F(RowPlanTest, FewRowsRideOnOneMessage) {
  const auto batch = Batch(100);
  EXPECT_THAT(PlanRowRuns({0, 256}, batch.get(), batch.get(), 1000, 1000),
              ElementsAre(RowPartitionRun{0, 256}));
  EXPECT_THAT(PlanRowRuns({85, 86}, batch.get(), nullptr, 0, 0),
              ElementsAre(RowPartitionRun{85, 86}));
  EXPECT_THAT(PlanRowRuns({0, 256}, nullptr, nullptr, 0, 0), ElementsAre(RowPartitionRun{0, 256}));
}

TEST_F(RowPlanTest, AFullMessageCarriesNone) {
  const auto batch = Batch(10000);
  EXPECT_THAT(PlanRowRuns({0, 256}, batch.get(), nullptr, kBulkPayloadBytes, 0),
              ElementsAre(RowPartitionRun{0, 0}, RowPartitionRun{0, 256}));
  EXPECT_THAT(PlanRowRuns({0, 256}, nullptr, batch.get(), 0, kBulkPayloadBytes),
              ElementsAre(RowPartitionRun{0, 0}, RowPartitionRun{0, 256}));
}

TEST_F(RowPlanTest, RunsAreAsLongAsMessagesHaveRoom) {
  const auto applied = Batch(50000), wanted = Batch(40000);
  const std::vector<RowPartitionRun> runs =
      PlanRowRuns({0, 256}, applied.get(), wanted.get(), 1 << 20, 0);
  ASSERT_GT(runs.size(), 3u);
  uint32_t next = 0;
  for (size_t r = 0; r < runs.size(); ++r) {
    EXPECT_EQ(runs[r].first, next);
    EXPECT_GT(runs[r].count, 0u);
    next += runs[r].count;
    const size_t before = r == 0 ? 1 << 20 : 0;
    const size_t bytes = before + RequestBytes(applied.get(), wanted.get(), runs[r]);
    EXPECT_LE(bytes, kBulkPayloadBytes);
    if (next == 256) continue;
    EXPECT_GT(bytes + RequestBytes(applied.get(), wanted.get(), {next, 1}), kBulkPayloadBytes);
  }
  EXPECT_EQ(next, 256u);
}

TEST_F(RowPlanTest, IdsThatAreReadHaveABoundOfTheirOwn) {
  const Placement placement = Placement::Compute({}, 1, 1, {{"items", 1, {}}});
  const auto tables = PlanTables(placement, 0, {});
  std::vector<uint64_t> ids(200000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const RowIds all = {ListOf(ids, (*tables)[0].salt, {0, 256}).ids};
  const auto batch = BatchIds::Create(*tables, std::make_shared<RowIds>(all));
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto runs = PlanRowRuns({0, 256}, nullptr, batch->get(), 0, 0);
  EXPECT_EQ(runs.size(), 3u);
  for (const RowPartitionRun& run : runs) {
    EXPECT_LE(RequestBytes(nullptr, batch->get(), run), kMostWantedBytes);
  }
}

}  // namespace
}  // namespace keelson
