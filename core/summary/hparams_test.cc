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

TEST(HparamsSummary, HasTheSettingsOfTheRun) {
  Hparams hparams;
  hparams.values = {{"optimizer", "adam"}, {"rate", 0.5}, {"sequential", true}};
  const v1::Summary summary = HparamsSummary(hparams, absl::FromUnixMillis(1'700'000'000'250));
  ASSERT_EQ(summary.value_size(), 1);
  EXPECT_EQ(summary.value(0).tag(), "_hparams_/session_start_info");
  const v1::HParamsSessionStart session = PluginData(summary.value(0)).session_start_info();
  EXPECT_EQ(session.start_time_secs(), 1'700'000'000.25);
  EXPECT_EQ(session.hparams().at("optimizer").string_value(), "adam");
  EXPECT_EQ(session.hparams().at("rate").number_value(), 0.5);
  EXPECT_TRUE(session.hparams().at("sequential").bool_value());
}

TEST(HparamsSummary, SaysHowTheRunEnded) {
  for (const bool success : {true, false}) {
    const v1::Summary summary = SessionEndSummary(success, absl::FromUnixMillis(1'700'000'000'250));
    ASSERT_EQ(summary.value_size(), 1);
    EXPECT_EQ(summary.value(0).tag(), "_hparams_/session_end_info");
    const v1::HParamsSessionEnd end = PluginData(summary.value(0)).session_end_info();
    EXPECT_EQ(end.status(), success ? v1::HParamsSessionEnd::STATUS_SUCCESS
                                    : v1::HParamsSessionEnd::STATUS_FAILURE);
    EXPECT_EQ(end.end_time_secs(), 1'700'000'000.25);
  }
}

// The shortest tensor that TensorBoard takes: no floats at all.
TEST(HparamsSummary, BytesOfTheTensor) {
  const v1::Summary summary = HparamsSummary(Hparams(), absl::UnixEpoch());
  EXPECT_EQ(summary.value(0).tensor().SerializeAsString(),
            std::string("\x08\x01\x12\x02\x12\x00", 6));
}

}  // namespace
}  // namespace keelson
