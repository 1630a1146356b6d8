#include "bench/table/measurement.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/table/child.h"
#include "bench/table/id_batches.h"
#include "bench/table/options.h"
#include "bench/table/row_table_subject.h"
#include "bench/table/subject.h"
#include "core/table/initial_rows.h"
#include "core/table/row_layout.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

constexpr size_t kDim = 4;

SubjectKind OwnTable() {
  return {"own", [](size_t dim, const InitialRows* initial) -> std::unique_ptr<Subject> {
            return std::make_unique<RowTableSubject>(
                *RowLayout::Create(static_cast<int64_t>(dim), {}), initial);
          }};
}

// All tables are asked for the same, and answer the same.
TEST(SubjectTest, FindsWhatWasInsertedAndNothingElse) {
  const InitialRows initial({Initializer::Kind::kUniform, 0, 1}, 3, kBenchSalt);
  std::vector<SubjectKind> kinds = Peers();
  kinds.push_back(OwnTable());
  for (const SubjectKind& kind : kinds) {
    if (kind.create == nullptr) continue;
    const std::unique_ptr<Subject> subject = kind.create(kDim, &initial);
    uint64_t row = 0;
    const IdBatch there = DrawBatch(1000, [&] { return row++; });
    const IdBatch half = DrawBatch(1000, [row = uint64_t{500}]() mutable { return row++; });
    subject->Insert(there);
    std::vector<float> out(1000 * kDim);
    EXPECT_EQ(subject->Find(half, out.data()), 500u) << kind.name;
    ASSERT_EQ(subject->Find(there, out.data()), 1000u) << kind.name;
    std::vector<float> expected(kDim);
    for (size_t i = 0; i < there.ids.size(); ++i) {
      initial.Fill(there.ids[i], absl::MakeSpan(expected));
      ASSERT_EQ(std::vector<float>(&out[i * kDim], &out[i * kDim] + kDim), expected) << kind.name;
    }
  }
}

TEST(MeasurementTest, MeasuresEverything) {
  TableBenchOptions options;
  options.rows = 20000;
  options.repeat = 2;
  options.batches = 1;
  const auto table = RunInChild([&] { return MeasureTable(OwnTable(), kDim, options); });
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_GT((*table)["insert"], 0);
  EXPECT_GT((*table)["own_mean"], 16);
  EXPECT_LT((*table)["own_mean"], 200);
  EXPECT_EQ((*table)["find_half"].size(), 2u);
  EXPECT_GT(MeasureLongestInsertion(options)["longest_preempted_ms"], 0);
  EXPECT_GT(MeasureThreads(kDim, options)["find_hits"][1][1], 0);
  EXPECT_GT(MeasureBesideArray(kDim, options)["ratio"][0], 0);
  for (const char* name : {"adagrad", "row-wise adagrad", "ftrl"}) {
    EXPECT_GT(MeasureUpdates(options)[name][0][0], 0) << name;
  }
}

TEST(ChildTest, AnEndWithoutAResultIsAnError) {
  EXPECT_EQ(*RunInChild([] { return nlohmann::json{{"a", 1}}; }), (nlohmann::json{{"a", 1}}));
  const auto failed = RunInChild([]() -> nlohmann::json { _exit(3); });
  EXPECT_EQ(failed.status().message(), "a measurement ended with 3 and no result");
}

}  // namespace
}  // namespace keelson::bench
