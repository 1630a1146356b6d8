#include "core/cluster/figures.h"

#include <cmath>

#include "absl/strings/match.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> NamesWhere(const std::vector<Figure>& figures,
                                    bool (*is)(const v1::FigureOptions& options)) {
  std::vector<std::string> names;
  for (const Figure& figure : figures) {
    if (is(figure.options())) names.push_back(figure.name());
  }
  return names;
}

TEST(FiguresTest, EachHasAUnitAndASentenceOfHelp) {
  for (const auto* figures : {&WorkerFigures(), &TrainingFigures()}) {
    for (const Figure& figure : *figures) {
      EXPECT_FALSE(figure.options().unit().empty()) << figure.name();
      EXPECT_TRUE(absl::EndsWith(figure.options().help(), ".")) << figure.name();
    }
  }
}

TEST(FiguresTest, AllAreExportedButThoseThatOthersTell) {
  const auto names =
      NamesWhere(WorkerFigures(), [](const auto& is) { return is.metric().empty(); });
  EXPECT_THAT(names, ElementsAre("loss_sum", "staleness_counts", "table_row_ids",
                                 "table_distinct_row_ids", "steps_without_loss"));
}

TEST(FiguresTest, AFigureOfAnIntervalFollowsFromANumber) {
  for (const Figure& figure : TrainingFigures()) {
    const auto* of = v1::WorkerFigures::descriptor()->FindFieldByName(figure.options().of());
    ASSERT_NE(of, nullptr) << figure.name();
    EXPECT_FALSE(of->is_repeated()) << figure.name();
    EXPECT_FALSE(figure.is_integer()) << figure.name();
  }
}

TEST(FiguresTest, SumsAddUpAndTheLargestStays) {
  v1::WorkerFigures figures;
  double next = 1;
  for (const Figure& figure : WorkerFigures()) {
    if (!figure.is_integer()) figure.Set(next++, &figures);
  }
  figures.set_steps(2);
  figures.set_push_retries(7);
  figures.set_staleness_max(5);
  v1::WorkerFigures sums = figures;
  figures.set_staleness_max(4);
  AddFigures(figures, &sums);
  EXPECT_EQ(sums.steps(), 4);
  EXPECT_EQ(sums.push_retries(), 14);
  EXPECT_EQ(sums.staleness_max(), 5);
  for (const Figure& figure : WorkerFigures()) {
    if (figure.is_integer()) continue;
    EXPECT_EQ(figure.Number(sums), 2 * figure.Number(figures)) << figure.name();
  }
}

TEST(FiguresTest, ListsAddUpToTheNumberOfBuckets) {
  v1::WorkerFigures figures;
  for (int64_t count = 0; count < 10; ++count) figures.add_staleness_counts(count);
  v1::WorkerFigures sums;
  sums.add_staleness_counts(100);
  AddFigures(figures, &sums);
  EXPECT_THAT(sums.staleness_counts(), ElementsAre(100, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(FiguresTest, ListsByTableAddUpAndAreBounded) {
  v1::WorkerFigures figures;
  for (int64_t count = 0; count < 1000; ++count) figures.add_table_row_ids(count);
  v1::WorkerFigures sums;
  AddFigures(figures, &sums);
  AddFigures(figures, &sums);
  ASSERT_EQ(sums.table_row_ids_size(), 256);
  EXPECT_EQ(sums.table_row_ids(255), 510);
}

TEST(FiguresTest, AnIntervalHasMeansOfItsStepsAndRates) {
  v1::WorkerFigures older;
  older.set_steps(10);
  older.set_push_seconds(1);
  v1::WorkerFigures newer;
  newer.set_steps(14);
  newer.set_loss_sum(2);
  newer.set_bytes_pushed(100);
  newer.set_push_seconds(3);
  const v1::TrainingFigures between = FiguresBetween(older, newer, absl::Seconds(2));
  EXPECT_EQ(between.steps_per_second(), 2);
  EXPECT_EQ(between.loss(), 0.5);
  EXPECT_EQ(between.push_seconds(), 0.5);
  EXPECT_EQ(between.pushed_bytes_per_second(), 50);
}

TEST(FiguresTest, StepsWithoutALossAreNotInItsMean) {
  v1::WorkerFigures older, newer;
  newer.set_steps(4);
  newer.set_steps_without_loss(3);
  newer.set_loss_sum(2);
  newer.set_push_seconds(2);
  v1::TrainingFigures between = FiguresBetween(older, newer, absl::Seconds(2));
  EXPECT_EQ(between.loss(), 2);
  EXPECT_EQ(between.push_seconds(), 0.5);
  newer.set_steps_without_loss(4);
  between = FiguresBetween(older, newer, absl::Seconds(2));
  EXPECT_TRUE(std::isnan(between.loss()));
}

TEST(FiguresTest, WithoutAStepThereIsNoMean) {
  const v1::TrainingFigures between = FiguresBetween({}, {}, absl::Seconds(2));
  EXPECT_EQ(between.steps_per_second(), 0);
  EXPECT_TRUE(std::isnan(between.staleness()));
}

}  // namespace
}  // namespace keelson
