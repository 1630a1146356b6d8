#include "core/config/run_description.h"

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file_system_testing.h"
#include "core/config/train_config.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kText[] = R"(
model {
  name: "small"
  input_shape: [4]
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { momentum {} l2: 0.5 }
learning_rate { base: 0.25 cosine {} }
train { batch_size: 8 max_steps: 40 seed: 7 }
evaluation { metrics { accuracy {} } metrics { top_k { k: 2 } } }
consistency { mode { bounded_staleness { staleness: 4 } } }
)";

v1::TrainConfig FinalConfig() {
  auto config = ParseTrainConfig(kText, "test");
  EXPECT_TRUE(config.ok()) << config.status();
  const absl::Status status = FinalizeTrainConfig(&*config);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(config);
}

TEST(DescribeHparams, NamesWhatRunsAreComparedBy) {
  const auto hparams = DescribeHparams(FinalConfig());
  ASSERT_TRUE(hparams.ok()) << hparams.status();
  const auto& values = hparams->values;
  EXPECT_EQ(values.at("model"), Hparams::Value("small"));
  EXPECT_EQ(values.at("optimizer"), Hparams::Value("momentum"));
  EXPECT_EQ(values.at("l2"), Hparams::Value(0.5));
  EXPECT_EQ(values.at("learning_rate"), Hparams::Value(0.25));
  EXPECT_EQ(values.at("learning_rate_schedule"), Hparams::Value("cosine"));
  EXPECT_EQ(values.at("batch_size"), Hparams::Value(8.0));
  EXPECT_EQ(values.at("max_steps"), Hparams::Value(40.0));
  EXPECT_EQ(values.at("epochs"), Hparams::Value(0.0));
  EXPECT_EQ(values.at("mode"), Hparams::Value("ssp:4"));
}

TEST(DescribeHparams, OfAnExternalModelTheLossIsAScripts) {
  auto config = ParseTrainConfig(
      "model { name: 'mine' external { variables { name: 'w' shape: 3 } } }"
      " data { external { train_records: 100 } } optimizer { sgd {} } learning_rate { base: 0.1 }"
      " train { batch_size: 8 epochs: 2 }",
      "test");
  ASSERT_TRUE(config.ok() && FinalizeTrainConfig(&*config).ok());
  const auto hparams = DescribeHparams(*config);
  ASSERT_TRUE(hparams.ok()) << hparams.status();
  EXPECT_EQ(hparams->values.at("loss"), Hparams::Value("a script's"));
}

TEST(DescribeHparams, GroupsAreToldByTheirAlgorithms) {
  v1::TrainConfig config = FinalConfig();
  EXPECT_EQ(DescribeHparams(config)->values.count("optimizer_groups"), 0u);
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "groups { variables: 'wide/*' ftrl {} } groups { variables: 'deep/*' frozen: true }"
      "groups { variables: '*/bias' learning_rate_factor: 2 }",
      config.mutable_optimizer()));
  EXPECT_EQ(DescribeHparams(config)->values.at("optimizer_groups"),
            Hparams::Value("wide/*: ftrl; deep/*: frozen; */bias: momentum"));
}

TEST(DescribeHparams, AModelThatMakesNoSenseIsAnError) {
  v1::TrainConfig config = FinalConfig();
  config.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(-1);
  EXPECT_EQ(DescribeHparams(config).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WriteRunDescription, WritesTheModelAndTheConfigurationAsTextsAndTheHparams) {
  MemoryFileSystem files;
  const auto writer = EventWriter::Create("/model", Clock::Real(), &files);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(WriteRunDescription(FinalConfig(), writer->get()).ok());
  const auto records = ReadTfRecords((*writer)->path(), &files);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 4u);
  v1::Event model, text, hparams;
  ASSERT_TRUE(model.ParseFromString((*records)[1]) && text.ParseFromString((*records)[2]) &&
              hparams.ParseFromString((*records)[3]));
  ASSERT_EQ(model.summary().value_size(), 1);
  EXPECT_EQ(model.summary().value(0).tag(), "model");
  EXPECT_EQ(model.summary().value(0).tensor().string_val(0),
            "| layer | kind | output | parameters |\n"
            "|---|---|---|---:|\n"
            "| `features` | | [4] | |\n"
            "| `dense_1` | dense | [3] | 15 |\n"
            "\n15 parameters, loss SOFTMAX_CROSS_ENTROPY\n");
  ASSERT_EQ(text.summary().value_size(), 1);
  EXPECT_EQ(text.summary().value(0).tag(), "config");
  const std::string code = text.summary().value(0).tensor().string_val(0);
  EXPECT_THAT(code, StartsWith("    model {\n      name: \"small\"\n"));
  EXPECT_THAT(code, HasSubstr("\n      batch_size: 8\n"));
  EXPECT_EQ(hparams.summary().value_size(), 1);
}

TEST(WriteRunDescription, TellsOfAFullDisk) {
  MemoryFileSystem files;
  const auto writer = EventWriter::Create("/model", Clock::Real(), &files);
  ASSERT_TRUE(writer.ok()) << writer.status();
  files.SetCapacity(files.used_bytes());
  EXPECT_EQ(WriteRunDescription(FinalConfig(), writer->get()).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace keelson
