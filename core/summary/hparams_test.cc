#include "core/summary/hparams.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

v1::HParamsPluginData PluginData(const v1::Summary::Value& value) {
  v1::HParamsPluginData data;
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "hparams");
  EXPECT_TRUE(data.ParseFromString(value.metadata().plugin_data().content()));
  return data;
}

TEST(HparamsSummary, HasTheExperimentAndTheRun) {
  Hparams hparams;
  hparams.values = {{"optimizer", "adam"}, {"rate", 0.5}, {"sequential", true}};
  hparams.metrics = {{"", "loss"}, {"eval", "accuracy"}};
  const v1::Summary summary = HparamsSummary(hparams, absl::FromUnixMillis(1'700'000'000'250));
  ASSERT_EQ(summary.value_size(), 2);

  EXPECT_EQ(summary.value(0).tag(), "_hparams_/experiment");
  const v1::HParamsExperiment experiment = PluginData(summary.value(0)).experiment();
  EXPECT_EQ(experiment.time_created_secs(), 1'700'000'000.25);
  ASSERT_EQ(experiment.hparam_infos_size(), 3);
  EXPECT_EQ(experiment.hparam_infos(0).name(), "optimizer");
  EXPECT_EQ(experiment.hparam_infos(0).type(), v1::HParamsExperiment::DATA_TYPE_STRING);
  EXPECT_EQ(experiment.hparam_infos(1).type(), v1::HParamsExperiment::DATA_TYPE_FLOAT64);
  EXPECT_EQ(experiment.hparam_infos(2).type(), v1::HParamsExperiment::DATA_TYPE_BOOL);
  ASSERT_EQ(experiment.metric_infos_size(), 2);
  EXPECT_EQ(experiment.metric_infos(0).name().group(), "");
  EXPECT_EQ(experiment.metric_infos(1).name().group(), "eval");
  EXPECT_EQ(experiment.metric_infos(1).name().tag(), "accuracy");

  EXPECT_EQ(summary.value(1).tag(), "_hparams_/session_start_info");
  const v1::HParamsSessionStart session = PluginData(summary.value(1)).session_start_info();
  EXPECT_EQ(session.start_time_secs(), 1'700'000'000.25);
  EXPECT_EQ(session.hparams().at("optimizer").string_value(), "adam");
  EXPECT_EQ(session.hparams().at("rate").number_value(), 0.5);
  EXPECT_TRUE(session.hparams().at("sequential").bool_value());
}

// The shortest tensor that TensorBoard takes: no floats at all.
TEST(HparamsSummary, BytesOfTheTensor) {
  const v1::Summary summary = HparamsSummary(Hparams(), absl::UnixEpoch());
  EXPECT_EQ(summary.value(0).tensor().SerializeAsString(),
            std::string("\x08\x01\x12\x02\x12\x00", 6));
}

}  // namespace
}  // namespace keelson
