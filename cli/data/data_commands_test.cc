#include "cli/data/data_commands.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_system_testing.h"
#include "core/config/train_config.h"
#include "core/data/example_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DataCommandsTest : public testing::Test {
 protected:
  DataCommandsTest() { EXPECT_TRUE(files_.CreateDirectories("/d").ok()); }

  std::string Content(const std::string& path) {
    const auto content = files_.ReadVersioned(path, 1 << 20);
    return content.ok() ? content->content : std::string(content.status().message());
  }
  std::string Statistics(const RowFileOptions& options, int64_t rows = 0) {
    std::ostringstream out;
    const absl::Status status = PrintStatistics(options, rows, &files_, &out);
    return status.ok() ? out.str() : std::string(status.message());
  }
  // 200 rows of visits.
  void WriteVisits(const std::string& path) {
    std::string content = "visit,user age,country,spent,score,constant,bought\n";
    for (int i = 0; i < 200; ++i) {
      absl::StrAppend(&content, "v", i, ",", 20 + i % 40, ",", i % 3 == 0 ? "NO" : "SE", ",",
                      i % 10 == 0 ? "" : absl::StrCat(i % 50 == 1 ? 90'000 : i % 30), ",", i % 7,
                      ".5,x,", i % 4 == 0 ? "yes" : "no", "\n");
    }
    files_.SetContent(path, content);
  }

  MemoryFileSystem files_;
};

TEST_F(DataCommandsTest, StatisticsOfCsv) {
  files_.SetContent("/d/a.csv", "age,city\n1,Oslo\n2,\n6,Oslo\n?,Rome\n");
  EXPECT_EQ(Statistics({"/d/a.csv"}),
            "4 rows of /d/a.csv\n"
            "column  kind   missing  distinct  min  median  max  mean  most frequent\n"
            "age     whole  25.0 %   3         1    2       6    3     1 (33.3 %), 2 (33.3 %), 6 "
            "(33.3 %)\n"
            "city    text   25.0 %   2         -    -       -    -     Oslo (66.7 %), Rome (33.3 "
            "%)\n");
  EXPECT_THAT(Statistics({"/d/a.csv"}, 2), HasSubstr("2 rows of"));
  RowFileOptions named = {"/d/a.csv"};
  named.csv.add_header("x");
  named.csv.add_header("y");
  EXPECT_THAT(Statistics(named), HasSubstr("5 rows of"));
}

TEST_F(DataCommandsTest, StatisticsOfTfRecords) {
  files_.SetContent("/d/a.tfrecord",
                    EncodeTfRecord(ExampleBuilder().Numbers("x", {0.5f}).Build()) +
                        EncodeTfRecord(ExampleBuilder().Integers("y", {1, 2}).Build()));
  const std::string table = Statistics({"/d/a.tfrecord"});
  EXPECT_THAT(table, HasSubstr("x       number         50.0 %   1         0.5  0.5     0.5  0.5"));
  EXPECT_THAT(table, HasSubstr("y       list of whole  50.0 %   2"));
}

TEST_F(DataCommandsTest, FilesOfColumnsAreNotSplit) {
  const auto error = [&] {
    std::ostringstream out;
    return std::string(SplitRows({{"/d/a"}, "/d/b", "/d/c", 0.5}, &files_, &out).message());
  };
  files_.SetContent("/d/a", std::string("PAR1\x15\0\x15", 7));
  EXPECT_EQ(
      error(),
      "/d/a: expected CSV or TFRecord, found a Parquet file, which data { parquet {} } reads");
  files_.SetContent("/d/a", "PK\x03\x04");
  EXPECT_EQ(
      error(),
      "/d/a: expected CSV or TFRecord, found an archive; those of NumPy data { npz {} } reads");
}

TEST_F(DataCommandsTest, FilesThatCannotBeRead) {
  files_.SetContent("/d/a.csv", "a,b\n1,2\n3\n");
  EXPECT_EQ(Statistics({"/d/a.csv"}), "/d/a.csv:3:2: expected 2 columns, found 1");
  EXPECT_EQ(Statistics({"/d/a.csv", "json"}),
            "--format: expected csv, tf_record, or, where nothing is split, npz or parquet, found "
            "\"json\"");
  RowFileOptions separated = {"/d/a.csv"};
  separated.csv.set_separator("::");
  EXPECT_EQ(Statistics(separated), "--separator: expected one character or tab, found \"::\"");
  EXPECT_THAT(Statistics({"/d/a.csv", "tf_record"}),
              HasSubstr("/d/a.csv: record 1 at byte 0: expected a length"));
  files_.SetContent("/d/a.csv", "a,b\n1,\"2\n");
  EXPECT_THAT(Statistics({"/d/a.csv"}), HasSubstr("/d/a.csv:2:3: expected a quotation mark"));
  files_.SetContent("/d/a.tfrecord", EncodeTfRecord("none"));
  EXPECT_THAT(Statistics({"/d/a.tfrecord"}),
              HasSubstr("/d/a.tfrecord: record 1 at byte 0: expected a tf.Example"));
}

TEST_F(DataCommandsTest, AProposalTrainsAsItIs) {
  WriteVisits("/d/a.csv");
  ProposalOptions options;
  options.file.path = "/d/a.csv";
  auto config = ProposeConfig(options, &files_);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::Status status = FinalizeTrainConfig(&*config);
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_EQ(config->model().features_size(), 2);
  EXPECT_EQ(config->model().features(0).name(), "country");
  EXPECT_EQ(config->model().features(1).name(), "numbers");
  EXPECT_THAT(config->model().features(1).dense().shape(), ElementsAre(4));
  std::string numbers;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.PrintToString(config->data().features(0), &numbers);
  EXPECT_EQ(
      numbers,
      "name: \"numbers\" columns { column: \"user age\" number { mean: 39.5 stddev: 11.54 } } "
      "columns { column: \"spent\" number { log: true mean: 2.744 stddev: 1.482 } } columns { "
      "column: \"spent\" missing { } } columns { column: \"score\" number { mean: 3.47 "
      "stddev: 1.997 } } ");
  EXPECT_THAT(config->data().labels(0).values(), ElementsAre("no", "yes"));
  EXPECT_EQ(config->train().epochs(), 5);
  EXPECT_TRUE(config->evaluation().exporters(0).has_best());
  EXPECT_EQ(config->data().data_dir(), "/d");
  EXPECT_THAT(config->data().train_files(), ElementsAre("a.csv"));

  std::ostringstream out;
  ASSERT_TRUE(PrintProposal(options, &files_, &out).ok());
  EXPECT_TRUE(ParseTrainConfig(out.str(), "proposal").ok()) << out.str();
}

TEST_F(DataCommandsTest, LargeFilesOfIdsAreVisitedTwiceAndScoredEachTime) {
  std::string content = "site,click\n";
  for (int i = 0; i < 200'000; ++i) absl::StrAppend(&content, "s", i % 50, ",", i % 2, "\n");
  files_.SetContent("/d/a.csv", content);
  ProposalOptions options;
  options.file.path = "/d/a.csv";
  auto config = ProposeConfig(options, &files_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train().epochs(), 2);
  EXPECT_EQ(config->checkpoint().save_steps(), 1250);  // 160,000 rows in batches of 128
}

TEST_F(DataCommandsTest, LabelsOfAllKinds) {
  WriteVisits("/d/a.csv");
  const auto loss = [&](const std::string& label) {
    ProposalOptions options;
    options.file.path = "/d/a.csv";
    options.label = label;
    auto config = ProposeConfig(options, &files_);
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(FinalizeTrainConfig(&*config).ok());
    return config->model().loss().kind();
  };
  EXPECT_EQ(loss(""), v1::LossConfig::SIGMOID_CROSS_ENTROPY);
  EXPECT_EQ(loss("score"), v1::LossConfig::MEAN_SQUARED_ERROR);
  EXPECT_EQ(loss("user age"), v1::LossConfig::MEAN_SQUARED_ERROR);
  files_.SetContent("/d/b.csv", "x,label\n1,a\n2,b\n2,c\n");
  ProposalOptions options;
  options.file.path = "/d/b.csv";
  auto config = ProposeConfig(options, &files_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model().loss().kind(), v1::LossConfig::SOFTMAX_CROSS_ENTROPY);
  EXPECT_TRUE(FinalizeTrainConfig(&*config).ok());
  options.label = "z";
  EXPECT_EQ(ProposeConfig(options, &files_).status(),
            absl::InvalidArgumentError("--label: expected one of x, label, found \"z\""));
  files_.SetContent("/d/b.csv", "x,label\n1,a\n1,b\n");
  options.label = "";
  EXPECT_EQ(
      ProposeConfig(options, &files_).status(),
      absl::InvalidArgumentError("/d/b.csv: expected a column beside the label \"label\" whose "
                                 "values come again, found none"));
}

TEST_F(DataCommandsTest, AProposalForTfRecordsWithLists) {
  std::string content;
  for (int i = 0; i < 50; ++i) {
    content += EncodeTfRecord(ExampleBuilder()
                                  .Integers("seen", {i % 5, i % 3})
                                  .Numbers("size", {static_cast<float>(i) + 0.5f})
                                  .Integers("click", {i % 2})
                                  .Build());
  }
  files_.SetContent("/d/a.tfrecord", content);
  ProposalOptions options;
  options.file.path = "/d/a.tfrecord";
  auto config = ProposeConfig(options, &files_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(FinalizeTrainConfig(&*config).ok());
  EXPECT_TRUE(config->model().features(0).has_bag());
  EXPECT_TRUE(config->data().has_tf_record());
  EXPECT_EQ(config->data().labels_size(), 0);
}

TEST_F(DataCommandsTest, SplitsByTime) {
  const auto split = [&](const std::string& content, double fraction) {
    for (const char* path : {"/d/train.csv", "/d/eval.csv"}) files_.Remove(path).IgnoreError();
    files_.SetContent("/d/a.csv", content);
    SplitOptions options = {{"/d/a.csv"}, "/d/train.csv", "/d/eval.csv", fraction};
    options.time = "at";
    std::ostringstream out;
    const absl::Status status = SplitRows(options, &files_, &out);
    return status.ok() ? Content("/d/train.csv") : std::string(status.message());
  };
  // As numbers 9 is before 10; of equal times all are on one side.
  EXPECT_EQ(split("at,x\n10,a\n9,b\n11,c\n8,d\n", 0.5), "at,x\n9,b\n8,d\n");
  EXPECT_EQ(Content("/d/eval.csv"), "at,x\n10,a\n11,c\n");
  EXPECT_EQ(split("at,x\n1,a\n2,b\n2,c\n2,d\n", 0.5), "at,x\n1,a\n");
  EXPECT_EQ(split("at,x\n2026-02-01,a\n2025-12-31,b\n2026-01-01,c\n", 0.67),
            "at,x\n2025-12-31,b\n2026-01-01,c\n");
  EXPECT_EQ(split("at,x\n1,a\n,b\n", 0.5),
            "/d/a.csv: row 2: expected a time in the column \"at\", found none");
  EXPECT_EQ(split("at,x\n7,a\n7,b\n", 0.5),
            "--time: expected times before 7, which is at the fraction, found none");
  EXPECT_EQ(split("when,x\n7,a\n", 0.5), "--time: expected a column of /d/a.csv, found \"at\"");
}

TEST_F(DataCommandsTest, SplitsKeepRowsAndHeader) {
  WriteVisits("/d/a.csv");
  SplitOptions options = {{"/d/a.csv"}, "/d/train.csv", "/d/eval.csv", 0.75};
  std::ostringstream out;
  const absl::Status status = SplitRows(options, &files_, &out);
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::string> train = absl::StrSplit(Content("/d/train.csv"), '\n', absl::SkipEmpty());
  std::vector<std::string> eval = absl::StrSplit(Content("/d/eval.csv"), '\n', absl::SkipEmpty());
  EXPECT_EQ(train.front(), eval.front());
  EXPECT_EQ(train.size() + eval.size(), 202u);
  // Five deviations of a share of 200.
  EXPECT_NEAR(static_cast<double>(train.size()) / 200, 0.75, 5 * 0.031);
  EXPECT_EQ(out.str(), absl::StrCat("/d/train.csv: ", train.size() - 1,
                                    " rows\n/d/eval.csv: ", eval.size() - 1, " rows\n"));
  std::vector<std::string> all = absl::StrSplit(Content("/d/a.csv"), '\n', absl::SkipEmpty());
  all.push_back(all.front());
  train.insert(train.end(), eval.begin(), eval.end());
  EXPECT_THAT(train, testing::UnorderedElementsAreArray(all));
}

TEST_F(DataCommandsTest, SplitsByAColumn) {
  std::string content;
  for (int i = 0; i < 300; ++i) {
    content +=
        EncodeTfRecord(ExampleBuilder().Integers("user", {i % 30}).Integers("i", {i}).Build());
  }
  files_.SetContent("/d/a.tfrecord", content);
  SplitOptions options = {{"/d/a.tfrecord"}, "/d/b.tfrecord", "/d/c.tfrecord", 0.5, "user"};
  std::ostringstream out;
  ASSERT_TRUE(SplitRows(options, &files_, &out).ok());
  std::vector<std::string> users[2];
  int64_t rows = 0;
  for (int part = 0; part < 2; ++part) {
    const auto file = RowFile::Open({part == 0 ? options.first : options.second}, &files_);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int64_t row = 0; row < (*file)->size(); ++row, ++rows) {
      ASSERT_TRUE((*file)->Read(row).ok());
      users[part].push_back(absl::StrCat((*file)->values()[0].integers()[0]));
    }
  }
  EXPECT_EQ(rows, 300);
  for (const std::string& user : users[0])
    EXPECT_THAT(users[1], testing::Not(testing::Contains(user)));
  EXPECT_FALSE(users[0].empty());
  EXPECT_FALSE(users[1].empty());
}

TEST_F(DataCommandsTest, SplitsThatCannotBe) {
  files_.SetContent("/d/a.csv", "a,b\n1,2\n");
  const auto error = [&](const SplitOptions& options) {
    std::ostringstream out;
    return std::string(SplitRows(options, &files_, &out).message());
  };
  EXPECT_EQ(error({{"/d/a.csv"}, "/d/b", "/d/c", 1}),
            "--fraction: expected a number between 0 and 1, found 1");
  EXPECT_EQ(error({{"/d/a.csv"}, "/d/b", "/d/c.gz"}),
            "/d/c.gz: expected a name without \".gz\", as plain files are written");
  EXPECT_EQ(error({{"/d/a.csv"}, "/d/b.zst", "/d/c"}),
            "/d/b.zst: expected a name without \".zst\", as plain files are written");
  EXPECT_EQ(error({{"/d/a.csv"}, "/d/b", "/d/c", 0.5, "x"}),
            "--by: expected a column of /d/a.csv, found \"x\"");
  EXPECT_EQ(error({{"/d/a.csv"}, "/d/b", "/d/c", 0.5, "a", 1, "b"}),
            "--time: expected no --by beside it, found both");
  EXPECT_THAT(error({{"/d/a.csv"}, "/d/a.csv", "/d/e"}), HasSubstr("/d/a.csv"));
}

}  // namespace
}  // namespace keelson
