#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/data/column_summary.h"
#include "cli/data/data_commands.h"
#include "cli/data/summarize.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

constexpr char kNumbers[] = "numbers";
constexpr char kTable[] = "vectors";
constexpr char kWideTable[] = "weights";
constexpr char kDeep[] = "deep";

// Whole numbers of fewer values are categories.
constexpr size_t kFewValues = 25;

enum class Use { kNothing, kNumber, kId, kBag };

Use UseOf(const ColumnSummary& column) {
  constexpr int64_t kFewRows = 100;
  if (column.distinct() + (column.missing() > 0 ? 1 : 0) < 2) return Use::kNothing;
  // Fractions are no ids, and such numbers have no text to be hashed by.
  const bool lists_of_fractions = column.has_lists() && column.all_numbers() && !column.all_whole();
  if (column.is_floating() || lists_of_fractions) {
    return column.width() > 0 && column.all_numbers() ? Use::kNumber : Use::kNothing;
  }
  if (column.has_lists() || column.width() != 1) return Use::kBag;
  const bool fractions = column.all_numbers() && !column.all_whole();
  if (fractions) return Use::kNumber;
  const bool names_rows =
      column.values() > kFewRows && column.distinct_is_exact() &&
      static_cast<double>(column.distinct()) > 0.95 * static_cast<double>(column.values());
  if (names_rows) return Use::kNothing;
  return column.all_whole() && column.distinct() > kFewValues ? Use::kNumber : Use::kId;
}

// Many numbers near 0 and few large ones.
bool IsSkewed(const ColumnSummary& column) {
  return column.min() >= 0 && column.max() > 100 &&
         column.max() > 10 * std::max(1.0, column.Quantile(0.9));
}

// To four digits.
float Rounded(double value) {
  float rounded = 0;
  return absl::SimpleAtof(absl::StrFormat("%.4g", value), &rounded) ? rounded : 0;
}

// A feature's name that a model can have.
std::string FeatureName(absl::string_view column, std::set<std::string>* taken) {
  std::string name(column);
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-') c = '_';
  }
  if (name.empty() || !absl::ascii_isalnum(name.front())) name.insert(0, "c");
  while (!taken->insert(name).second) name += "_";
  return name;
}

class Proposer {
 public:
  Proposer(const ProposalOptions& options, const FileSummary& summary)
      : options_(options), summary_(summary) {}

  absl::StatusOr<v1::TrainConfig> Propose() {
    ASSIGN_OR_RETURN(const size_t label, FindLabel());
    SetData();
    SetLabel(label);
    for (size_t i = 0; i < summary_.columns.size(); ++i) {
      if (i != label) AddColumn(i);
    }
    if (numbers_.columns().empty() && embeddings_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options_.file.path, ": expected a column beside the label \"",
                       summary_.names[label], "\" whose values come again, found none"));
    }
    AddModel();
    AddTraining();
    return std::move(config_);
  }

 private:
  absl::StatusOr<size_t> FindLabel() const {
    const std::vector<std::string>& names = summary_.names;
    const auto named = [&](absl::string_view wanted) {
      return std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return absl::AsciiStrToLower(name) == absl::AsciiStrToLower(wanted);
      });
    };
    if (!options_.label.empty()) {
      const auto found = std::find(names.begin(), names.end(), options_.label);
      if (found != names.end()) return found - names.begin();
      return absl::InvalidArgumentError(absl::StrCat("--label: expected one of ",
                                                     absl::StrJoin(names, ", "), ", found \"",
                                                     options_.label, "\""));
    }
    for (const char* usual : {"label", "target", "click", "clicked", "y", "class", "rating"}) {
      const auto found = named(usual);
      if (found != names.end()) return found - names.begin();
    }
    if (!names.empty()) return names.size() - 1;
    return absl::InvalidArgumentError(
        absl::StrCat(options_.file.path, ": expected a column, found none"));
  }

  void SetData() {
    v1::DataConfig* const data = config_.mutable_data();
    data->set_data_dir(DirectoryOf(options_.file.path));
    data->add_train_files(BaseName(options_.file.path));
    if (summary_.format == kCsv) {
      *data->mutable_csv() = options_.file.csv;
    } else if (summary_.format == kNpz) {
      data->mutable_npz();
    } else if (summary_.format == kParquet) {
      data->mutable_parquet();
    } else {
      data->mutable_tf_record();
    }
  }

  void SetLabel(size_t i) {
    const ColumnSummary& column = summary_.columns[i];
    label_ = FeatureName(summary_.names[i], &names_of_labels_);
    v1::DataConfig::LabelColumn label;
    label.set_name(label_);
    if (label_ != summary_.names[i]) label.set_column(summary_.names[i]);
    const bool binary = column.distinct() == 2;
    const bool is_01 = column.all_whole() && column.min() == 0 && column.max() == 1;
    classes_ = !binary && column.all_numbers() ? 0 : static_cast<int64_t>(column.distinct());
    if (binary && !is_01 && column.is_floating()) {
      label.set_at_least(static_cast<float>(column.max()));
    } else if (classes_ > 0 && !is_01) {
      std::set<std::string> values;
      for (const auto& value : column.Frequent(column.distinct())) values.insert(value.first);
      label.mutable_values()->Add(values.begin(), values.end());
    }
    if (!label.column().empty() || label.values_size() > 0 || label.has_at_least())
      *config_.mutable_data()->add_labels() = label;
  }

  void AddColumn(size_t i) {
    const ColumnSummary& column = summary_.columns[i];
    switch (UseOf(column)) {
      case Use::kNothing:
        return;
      case Use::kNumber:
        return AddNumber(summary_.names[i], column);
      case Use::kId:
      case Use::kBag:
        return AddIds(summary_.names[i], column.has_lists());
    }
  }

  void AddNumber(const std::string& name, const ColumnSummary& column) {
    v1::DataConfig::ColumnValues* const values = numbers_.add_columns();
    values->set_column(name);
    v1::DataConfig::Number* const number = values->mutable_number();
    const bool skewed = IsSkewed(column);
    const auto [mean, deviation] =
        skewed ? column.LogMoments() : std::make_pair(column.mean(), column.Deviation());
    number->set_log(skewed);
    number->set_mean(Rounded(mean));
    if (deviation > 0) number->set_stddev(Rounded(deviation));
    // A list of floats has one mean for all of its numbers.
    if (column.width() > 1) number->set_size(column.width());
    count_ += column.width() + (column.missing() > 0 ? 1 : 0);
    if (column.missing() == 0) return;
    v1::DataConfig::ColumnValues* const missing = numbers_.add_columns();
    missing->set_column(name);
    missing->mutable_missing();
  }

  void AddIds(const std::string& column, bool bag) {
    const std::string name = FeatureName(column, &names_);
    v1::Feature* const feature = config_.mutable_model()->add_features();
    feature->set_name(name);
    if (bag) {
      feature->mutable_bag();
    } else {
      feature->mutable_id();
    }
    if (name != column) {
      v1::DataConfig::FeatureColumns* const columns = config_.mutable_data()->add_features();
      columns->set_name(name);
      columns->add_columns()->set_column(column);
    }
    embeddings_.push_back(Lookup(name, "_vector", kTable, bag));
    weights_.push_back(Lookup(name, "_weight", kWideTable, bag));
  }

  static v1::LayerConfig Lookup(const std::string& feature, absl::string_view ending,
                                const std::string& table, bool bag) {
    v1::LayerConfig lookup;
    lookup.set_name(absl::StrCat(feature, ending));
    lookup.add_inputs(feature);
    if (!bag) {
      lookup.mutable_embedding()->set_table(table);
      return lookup;
    }
    lookup.mutable_embedding_bag()->set_table(table);
    lookup.mutable_embedding_bag()->set_combiner(v1::EmbeddingBag::SUM);
    return lookup;
  }

  // Scores of an example.
  int64_t Outputs() const { return classes_ > 2 ? classes_ : 1; }

  // Wide and deep: a network of the numbers and of the vectors of all ids, and beside it a weight
  // for each id.
  void AddModel() {
    v1::ModelConfig* const model = config_.mutable_model();
    std::vector<std::string> inputs;
    if (!numbers_.columns().empty()) {
      numbers_.set_name(FeatureName(kNumbers, &names_));
      v1::Feature* const feature = model->add_features();
      feature->set_name(numbers_.name());
      feature->mutable_dense()->add_shape(count_);
      *config_.mutable_data()->add_features() = numbers_;
      inputs.push_back(numbers_.name());
    }
    if (!embeddings_.empty()) {
      AddTable(kTable, 8);
      AddTable(kWideTable, Outputs());
    }
    for (v1::LayerConfig& embedding : embeddings_) {
      inputs.push_back(embedding.name());
      *model->add_layers() = std::move(embedding);
    }
    if (inputs.size() > 1) {
      v1::LayerConfig* const concat = model->add_layers();
      concat->mutable_concat();
      concat->mutable_inputs()->Add(inputs.begin(), inputs.end());
    }
    for (const int64_t units : {64, 32}) {
      v1::LayerConfig* const dense = model->add_layers();
      dense->mutable_dense()->set_units(units);
      if (inputs.size() == 1 && units == 64) dense->add_inputs(inputs.front());
      model->add_layers()->mutable_relu();
    }
    v1::LayerConfig* const deep = model->add_layers();
    deep->mutable_dense()->set_units(Outputs());
    if (!weights_.empty()) {
      deep->set_name(kDeep);
      AddWide();
    }
    v1::LossConfig* const loss = model->mutable_loss();
    loss->set_label(label_);
    loss->set_kind(classes_ == 0   ? v1::LossConfig::MEAN_SQUARED_ERROR
                   : classes_ == 2 ? v1::LossConfig::SIGMOID_CROSS_ENTROPY
                                   : v1::LossConfig::SOFTMAX_CROSS_ENTROPY);
  }

  void AddTable(const std::string& name, int64_t dim) {
    v1::TableConfig* const table = config_.mutable_model()->add_tables();
    table->set_name(name);
    table->set_dim(dim);
  }

  // The sum of the weights and of what the network says. A weight that nothing tells of is 0.
  void AddWide() {
    v1::LayerConfig sum;
    sum.set_name("sum");
    sum.mutable_add();
    for (v1::LayerConfig& weight : weights_) {
      sum.add_inputs(weight.name());
      *config_.mutable_model()->add_layers() = std::move(weight);
    }
    sum.add_inputs(kDeep);
    *config_.mutable_model()->add_layers() = std::move(sum);
    v1::InitialValuesConfig::Group* const zeros = config_.mutable_initial_values()->add_groups();
    zeros->set_variables(kWideTable);
    zeros->mutable_constant();
    v1::OptimizerConfig::Group* const group = config_.mutable_optimizer()->add_groups();
    group->set_variables(kWideTable);
    group->mutable_ftrl()->set_l1(0.001f);
    group->mutable_ftrl()->set_beta(1);
    group->set_learning_rate(0.02f);
  }

  void AddTraining() {
    config_.mutable_optimizer()->mutable_adagrad();
    config_.mutable_learning_rate()->set_base(0.1f);
    config_.mutable_learning_rate()->mutable_cosine();
    constexpr int64_t kBatch = 128;
    config_.mutable_train()->set_batch_size(kBatch);
    config_.mutable_train()->set_epochs(Epochs());
    // The evaluator scores each epoch, and the best one is kept.
    const int64_t steps = summary_.all_rows * 4 / 5 / kBatch;
    config_.mutable_checkpoint()->set_save_steps(std::max<int64_t>(steps, 1));
    v1::EvaluationConfig* const evaluation = config_.mutable_evaluation();
    evaluation->add_exporters()->mutable_best();
    evaluation->mutable_early_stopping()->set_patience(2);
    if (classes_ != 2) return;
    config_.mutable_evaluation()->add_metrics()->mutable_auc();
    config_.mutable_evaluation()->add_metrics()->mutable_accuracy();
    config_.mutable_evaluation()->add_metrics()->mutable_normalized_entropy();
    config_.mutable_evaluation()->add_metrics()->mutable_calibration();
  }

  // Most values of most columns of a large file are rare: the vectors of these learn the examples
  // by heart when they see them again and again.
  int64_t Epochs() const {
    constexpr int64_t kManyRows = 200'000;
    return summary_.all_rows < kManyRows || embeddings_.empty() ? 5 : 2;
  }

  const ProposalOptions& options_;
  const FileSummary& summary_;
  v1::TrainConfig config_;
  std::set<std::string> names_, names_of_labels_;
  std::string label_;
  int64_t classes_ = 0;  // of the label; 0: it is a number
  v1::DataConfig::FeatureColumns numbers_;
  int64_t count_ = 0;                                  // of all numbers of a record
  std::vector<v1::LayerConfig> embeddings_, weights_;  // of each feature of ids
};

}  // namespace

absl::StatusOr<v1::TrainConfig> ProposeConfig(const ProposalOptions& options,
                                              FileSystem* file_system) {
  ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options.file, options.rows, file_system));
  return Proposer(options, summary).Propose();
}

absl::Status PrintProposal(const ProposalOptions& options, FileSystem* file_system,
                           std::ostream* out) {
  ASSIGN_OR_RETURN(const v1::TrainConfig config, ProposeConfig(options, file_system));
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  *out << "# Proposed from the columns of " << absl::CHexEscape(options.file.path) << ".\n" << text;
  return absl::OkStatus();
}

}  // namespace keelson
