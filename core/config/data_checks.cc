#include "core/config/data_checks.h"

#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/config/field_checks.h"
#include "core/data/columns/data_source.h"
#include "core/data/columns/record_plan.h"

namespace keelson {
namespace {

absl::Status CheckSubset(const std::string& path, const v1::DataConfig::Subset& subset) {
  RETURN_IF_ERROR(NotNegative(path + ".begin", subset.begin()));
  if (subset.end() == 0 || subset.end() > subset.begin()) return absl::OkStatus();
  return FieldError(path + ".end", absl::StrCat("0 (all) or > ", subset.begin(), " (its begin)"),
                    subset.end());
}

absl::Status CheckClassNames(const v1::DataConfig& data, const ModelSpec& model) {
  if (data.class_names().empty()) return absl::OkStatus();
  if (model.main_loss().num_classes() == 0) {
    return FieldError("data.class_names", "none (the model's labels are numbers)",
                      data.class_names_size());
  }
  if (data.class_names_size() != model.main_loss().num_classes()) {
    return FieldError("data.class_names",
                      absl::StrCat(model.main_loss().num_classes(), " (the classes)"),
                      data.class_names_size());
  }
  std::set<absl::string_view> names;
  for (int i = 0; i < data.class_names_size(); ++i) {
    const std::string& name = data.class_names(i);
    if (!name.empty() && names.insert(name).second) continue;
    return FieldError(absl::StrCat("data.class_names[", i, "]"), "a name of its own",
                      absl::StrCat("'", name, "'"));
  }
  return absl::OkStatus();
}

template <typename Generated>
absl::Status CheckRecords(const std::string& field, const Generated& generated) {
  RETURN_IF_ERROR(
      Positive(absl::StrCat("data.", field, ".train_records"), generated.train_records()));
  return Positive(absl::StrCat("data.", field, ".eval_records"), generated.eval_records());
}

absl::Status CheckGenerated(const v1::DataConfig& data) {
  switch (data.source_case()) {
    case v1::DataConfig::kGeneratedRegression:
      return CheckRecords("generated_regression", data.generated_regression());
    case v1::DataConfig::kGeneratedTextures:
      return CheckRecords("generated_textures", data.generated_textures());
    case v1::DataConfig::kGeneratedVisits:
      return CheckRecords("generated_visits", data.generated_visits());
    case v1::DataConfig::kGeneratedClicks:
      return CheckRecords("generated_clicks", data.generated_clicks());
    case v1::DataConfig::kGeneratedCtr:
      return CheckRecords("generated_ctr", data.generated_ctr());
    case v1::DataConfig::kGeneratedPairs:
      return CheckRecords("generated_pairs", data.generated_pairs());
    case v1::DataConfig::kLibsvm:
    case v1::DataConfig::kLibffm:
    case v1::DataConfig::kCriteo:
    case v1::DataConfig::kCsv:
    case v1::DataConfig::kTfRecord:
    case v1::DataConfig::kNpz:
    case v1::DataConfig::kParquet:
    case v1::DataConfig::kColumnar:
    case v1::DataConfig::kExternal:
      return absl::OkStatus();
    case v1::DataConfig::kGenerated:
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return CheckRecords("generated", data.generated());
}

// The fields of sources that are files of records.
absl::Status CheckFiles(const v1::DataConfig& data) {
  RETURN_IF_ERROR(NotNegative("data.max_bad_records", data.max_bad_records()));
  if (data.has_columnar() && data.max_bad_records() > 0) {
    return FieldError("data.max_bad_records", "none with data.columnar, which has no bad records",
                      data.max_bad_records());
  }
  if (HasNamedFiles(data)) return absl::OkStatus();
  const std::string expected = absl::StrCat("none without data.", kSourcesWithFiles);
  if (data.train_files_size() > 0) {
    return FieldError("data.train_files", expected, data.train_files_size());
  }
  if (data.eval_files_size() > 0) {
    return FieldError("data.eval_files", expected, data.eval_files_size());
  }
  if (data.max_bad_records() > 0) {
    return FieldError("data.max_bad_records", expected, data.max_bad_records());
  }
  return absl::OkStatus();
}

// A stream is a set of files that is read as it grows.
absl::Status CheckStream(const v1::DataConfig& data) {
  if (!data.has_stream()) return absl::OkStatus();
  const bool readable = data.has_libsvm() || data.has_libffm() || data.has_criteo() ||
                        data.has_csv() || data.has_tf_record();
  if (!readable) {
    return FieldError("data.stream", "data.libsvm, libffm, criteo, csv or tf_record beside it",
                      "another source");
  }
  if (data.train_files().empty()) {
    return FieldError("data.train_files", "names of the files of data.stream, as in \"part-*\"",
                      "none");
  }
  if (data.eval_files().empty()) {
    return FieldError("data.eval_files",
                      "the files that evaluate, as the last fifth of data.stream is never known",
                      "none");
  }
  if (data.train_subset().begin() != 0 || data.train_subset().end() != 0) {
    return FieldError("data.train_subset", "none beside data.stream", "one");
  }
  if (absl::StrContains(data.stream().end_file(), '/')) {
    return FieldError("data.stream.end_file", "the name of a file in data_dir",
                      absl::StrCat("\"", data.stream().end_file(), "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckCsv(const v1::DataConfig::Csv& csv) {
  const std::string& separator = csv.separator();
  const bool is_one = separator.size() <= 1 || separator == "tab";
  if (!is_one || separator == "\"" || separator == "\n" || separator == "\r") {
    return FieldError("data.csv.separator",
                      "one character that ends no line and is no quotation mark, or \"tab\"",
                      absl::StrCat("\"", absl::CHexEscape(separator), "\""));
  }
  for (int i = 0; i < csv.header_size(); ++i) {
    if (!csv.header(i).empty()) continue;
    return FieldError(absl::StrCat("data.csv.header[", i, "]"), "a column's name", "\"\"");
  }
  return absl::OkStatus();
}

// How features and labels are made of columns.
absl::Status CheckColumns(const v1::DataConfig& data, const ModelSpec& model) {
  if (HasColumns(data)) {
    RETURN_IF_ERROR(CheckCsv(data.csv()));
    return PlanRecords(data, model.records).status();
  }
  const std::string expected = absl::StrCat("none without data.", kSourcesWithColumns);
  if (data.features_size() > 0) {
    return FieldError("data.features", expected, data.features_size());
  }
  if (data.labels_size() > 0) return FieldError("data.labels", expected, data.labels_size());
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDataConfig(const v1::DataConfig& data, const ModelSpec& model) {
  if (data.has_external()) {
    return FieldError("data.external", "records that the model can read, as it is not external",
                      "those of a script");
  }
  RETURN_IF_ERROR(CheckGenerated(data));
  RETURN_IF_ERROR(CheckFiles(data));
  RETURN_IF_ERROR(CheckStream(data));
  RETURN_IF_ERROR(NotNegative("data.order_group", data.order_group()));
  RETURN_IF_ERROR(CheckColumns(data, model));
  RETURN_IF_ERROR(CheckSubset("data.train_subset", data.train_subset()));
  RETURN_IF_ERROR(CheckSubset("data.eval_subset", data.eval_subset()));
  return CheckClassNames(data, model);
}

absl::Status CheckExternalData(const v1::DataConfig& data) {
  if (!data.has_external()) {
    return FieldError("data", "external beside model.external", "another source or none");
  }
  RETURN_IF_ERROR(Positive("data.external.train_records", data.external().train_records()));
  RETURN_IF_ERROR(CheckFiles(data));
  RETURN_IF_ERROR(CheckStream(data));
  RETURN_IF_ERROR(NotNegative("data.order_group", data.order_group()));
  if (data.features_size() > 0 || data.labels_size() > 0 || data.class_names_size() > 0) {
    return FieldError("data", "neither features, labels nor class_names beside external", "some");
  }
  if (data.has_train_subset() || data.has_eval_subset()) {
    return FieldError("data", "neither train_subset nor eval_subset beside external", "one");
  }
  return absl::OkStatus();
}

}  // namespace keelson
