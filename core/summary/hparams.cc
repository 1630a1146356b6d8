#include "core/summary/hparams.h"

#include "absl/strings/string_view.h"

namespace keelson {
namespace {

constexpr char kPlugin[] = "hparams";
constexpr char kExperimentTag[] = "_hparams_/experiment";
constexpr char kSessionStartTag[] = "_hparams_/session_start_info";

using DataType = v1::HParamsExperiment::DataType;

DataType TypeOf(const Hparams::Value& value) {
  if (std::holds_alternative<bool>(value)) return v1::HParamsExperiment::DATA_TYPE_BOOL;
  if (std::holds_alternative<double>(value)) return v1::HParamsExperiment::DATA_TYPE_FLOAT64;
  return v1::HParamsExperiment::DATA_TYPE_STRING;
}

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

v1::HParamsPluginData Experiment(const Hparams& hparams, double now) {
  v1::HParamsPluginData data;
  v1::HParamsExperiment* const experiment = data.mutable_experiment();
  experiment->set_time_created_secs(now);
  for (const auto& [name, value] : hparams.values) {
    auto* const info = experiment->add_hparam_infos();
    info->set_name(name);
    info->set_type(TypeOf(value));
  }
  for (const Hparams::Metric& metric : hparams.metrics) {
    auto* const name = experiment->add_metric_infos()->mutable_name();
    name->set_group(metric.group);
    name->set_tag(metric.tag);
  }
  return data;
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
  const double seconds = static_cast<double>(absl::ToUnixMicros(now)) / 1e6;
  v1::Summary summary;
  AddPluginData(kExperimentTag, Experiment(hparams, seconds), &summary);
  AddPluginData(kSessionStartTag, SessionStart(hparams, seconds), &summary);
  return summary;
}

}  // namespace keelson
