#include "core/summary/hparams.h"

#include "absl/strings/string_view.h"

namespace keelson {
namespace {

constexpr char kPlugin[] = "hparams";
constexpr char kSessionStartTag[] = "_hparams_/session_start_info";
constexpr char kSessionEndTag[] = "_hparams_/session_end_info";

google::protobuf::Value ToValue(const Hparams::Value& value) {
  google::protobuf::Value out;
  if (const bool* const flag = std::get_if<bool>(&value)) {
    out.set_bool_value(*flag);
  } else if (const double* const number = std::get_if<double>(&value)) {
    out.set_number_value(*number);
  } else {
    out.set_string_value(std::get<std::string>(value));
  }
  return out;
}

v1::HParamsPluginData SessionStart(const Hparams& hparams, double now) {
  v1::HParamsPluginData data;
  v1::HParamsSessionStart* const session = data.mutable_session_start_info();
  session->set_start_time_secs(now);
  for (const auto& [name, value] : hparams.values) {
    (*session->mutable_hparams())[name] = ToValue(value);
  }
  return data;
}

double Seconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

// TensorBoard wants a tensor also where everything is in the metadata: one without elements.
void AddPluginData(absl::string_view tag, const v1::HParamsPluginData& data, v1::Summary* summary) {
  v1::Summary::Value* const value = summary->add_value();
  value->set_tag(std::string(tag));
  value->mutable_tensor()->set_dtype(v1::TensorProto::DT_FLOAT);
  value->mutable_tensor()->mutable_tensor_shape()->add_dim();
  v1::SummaryMetadata* const metadata = value->mutable_metadata();
  metadata->set_data_class(v1::SummaryMetadata::DATA_CLASS_TENSOR);
  metadata->mutable_plugin_data()->set_plugin_name(kPlugin);
  metadata->mutable_plugin_data()->set_content(data.SerializeAsString());
}

}  // namespace

v1::Summary HparamsSummary(const Hparams& hparams, absl::Time now) {
  v1::Summary summary;
  AddPluginData(kSessionStartTag, SessionStart(hparams, Seconds(now)), &summary);
  return summary;
}

v1::Summary SessionEndSummary(bool success, absl::Time now) {
  v1::HParamsPluginData data;
  v1::HParamsSessionEnd* const end = data.mutable_session_end_info();
  end->set_status(success ? v1::HParamsSessionEnd::STATUS_SUCCESS
                          : v1::HParamsSessionEnd::STATUS_FAILURE);
  end->set_end_time_secs(Seconds(now));
  v1::Summary summary;
  AddPluginData(kSessionEndTag, data, &summary);
  return summary;
}

}  // namespace keelson
