#include "core/data/stream/stream_dataset.h"

#include <numeric>
#include <string>

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::StreamFile File(const std::string& name, int64_t begin, int64_t end) {
  v1::StreamFile file;
  file.set_name(name);
  file.set_begin(begin);
  file.set_end(end);
  return file;
}

class StreamDatasetTest : public testing::Test {
 protected:
  StreamDatasetTest() {
    v1::DataConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "data_dir: '/d' libsvm {} train_files: '*' stream { end_file: '_END' }", &config));
    EXPECT_TRUE(files_.CreateDirectories("/d").ok());
    files_.SetContent("/d/a", "1 10:1\n1 11:1 12:1\n");
    files_.SetContent("/d/b", "1 20:1\n");
    files_.SetContent("/d/c", "1 30:1\n1 31:1\n1 32:1\n");
    const RecordSchema schema = {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}};
    stream_ = std::make_unique<StreamDataset>(
        std::make_shared<const StreamDirectory>(config, schema, &files_));
  }

  absl::StatusOr<std::vector<uint64_t>> Ids(int64_t begin, int64_t end) {
    std::vector<int64_t> records(end - begin);
    std::iota(records.begin(), records.end(), begin);
    Batch batch;
    const absl::Status status = stream_->Read(records, &batch);
    if (!status.ok()) return status;
    EXPECT_EQ(batch.labels[0].shape().dim(0), end - begin);
    return batch.features[0].ids;
  }

  MemoryFileSystem files_;
  std::unique_ptr<StreamDataset> stream_;
};

TEST_F(StreamDatasetTest, ABatchHasRecordsOfSeveralFiles) {
  stream_->SetFiles({File("a", 100, 102), File("b", 102, 103), File("c", 103, 106)});
  EXPECT_THAT(Ids(100, 106).value(), ElementsAre(10, 11, 12, 20, 30, 31, 32));
  EXPECT_THAT(Ids(101, 104).value(), ElementsAre(11, 12, 20, 30));
}

TEST_F(StreamDatasetTest, FilesThatWereOpenedStayOpenWhileTheyAreNeeded) {
  stream_->SetFiles({File("a", 0, 2), File("b", 2, 3)});
  EXPECT_THAT(Ids(1, 3).value(), ElementsAre(11, 12, 20));
  stream_->SetFiles({File("b", 2, 3), File("c", 3, 6)});
  EXPECT_THAT(Ids(2, 5).value(), ElementsAre(20, 30, 31));
  EXPECT_EQ(Ids(1, 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(StreamDatasetTest, AFileThatIsNotAsTheChiefHasFoundIt) {
  stream_->SetFiles({File("a", 0, 5)});
  const auto ids = Ids(0, 1);
  EXPECT_EQ(ids.status(), absl::FailedPreconditionError(
                              "/d/a: expected 5 records, as the chief has found, found 2"));
}

TEST_F(StreamDatasetTest, AFileThatIsGone) {
  stream_->SetFiles({File("gone", 0, 5)});
  EXPECT_TRUE(absl::IsNotFound(Ids(0, 1).status())) << Ids(0, 1).status();
}

}  // namespace
}  // namespace keelson
