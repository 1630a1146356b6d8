#include "core/config/train_config_defaults.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

// "dense", "max_pool", ...: the name of the field that is set; empty: none is.
std::string KindName(const v1::LayerConfig& layer) {
  const auto* kind = layer.GetDescriptor()->FindOneofByName("kind");
  const auto* field = layer.GetReflection()->GetOneofFieldDescriptor(layer, kind);
  return field == nullptr ? "" : field->name();
}

template <typename DenseOrConv2D>
void SetKernelInitializer(DenseOrConv2D* layer) {
  if (layer->kernel_initializer() != v1::KERNEL_INITIALIZER_UNSPECIFIED) return;
  layer->set_kernel_initializer(v1::GLOROT_UNIFORM);
}

v1::Padding OrValid(v1::Padding padding) {
  return padding == v1::PADDING_UNSPECIFIED ? v1::VALID : padding;
}

void SetPool(v1::Pool* pool) {
  if (pool->stride() == 0) pool->set_stride(pool->size());
  pool->set_padding(OrValid(pool->padding()));
}

void SetConv2D(bool own_kernel, v1::Conv2D* conv2d) {
  if (conv2d->stride() == 0) conv2d->set_stride(1);
  conv2d->set_padding(OrValid(conv2d->padding()));
  if (own_kernel) SetKernelInitializer(conv2d);
}

void SetBatchNorm(v1::BatchNorm* batch_norm) {
  if (!batch_norm->has_momentum()) batch_norm->set_momentum(0.99f);
  if (!batch_norm->has_epsilon()) batch_norm->set_epsilon(1e-3f);
}

void SetEmbeddingBag(v1::EmbeddingBag* bag) {
  if (bag->combiner() == v1::EmbeddingBag::COMBINER_UNSPECIFIED) {
    bag->set_combiner(v1::EmbeddingBag::MEAN);
  }
}

void SetLayer(v1::LayerConfig* layer) {
  // Shared variables start as their owner has it, and an initializer beside them is an error.
  const bool own_kernel = layer->variables_of().empty();
  if (layer->has_dense() && own_kernel) SetKernelInitializer(layer->mutable_dense());
  if (layer->has_conv2d()) SetConv2D(own_kernel, layer->mutable_conv2d());
  if (layer->has_max_pool()) SetPool(layer->mutable_max_pool());
  if (layer->has_avg_pool()) SetPool(layer->mutable_avg_pool());
  if (layer->has_batch_norm()) SetBatchNorm(layer->mutable_batch_norm());
  if (layer->has_embedding_bag()) SetEmbeddingBag(layer->mutable_embedding_bag());
}

void SetModel(v1::ModelConfig* model) {
  std::map<std::string, int> count_of_kind;
  for (v1::LayerConfig& layer : *model->mutable_layers()) {
    SetLayer(&layer);
    const std::string kind = KindName(layer);
    const int number = ++count_of_kind[kind];
    if (layer.name().empty() && !kind.empty()) layer.set_name(absl::StrCat(kind, "_", number));
  }
}

void SetAdagrad(v1::OptimizerConfig::Adagrad* adagrad) {
  if (!adagrad->has_initial_accumulator()) adagrad->set_initial_accumulator(0.1f);
  if (!adagrad->has_epsilon()) adagrad->set_epsilon(1e-7f);
}

void SetRowWiseAdagrad(v1::OptimizerConfig::RowWiseAdagrad* adagrad) {
  if (!adagrad->has_initial_accumulator()) adagrad->set_initial_accumulator(0);
  if (!adagrad->has_epsilon()) adagrad->set_epsilon(1e-8f);
}

void SetRmsProp(v1::OptimizerConfig::RmsProp* rmsprop) {
  if (!rmsprop->has_decay()) rmsprop->set_decay(0.9f);
  if (!rmsprop->has_momentum()) rmsprop->set_momentum(0);
  if (!rmsprop->has_epsilon()) rmsprop->set_epsilon(1e-10f);
}

template <typename AdamOrAdamW>
void SetAdam(AdamOrAdamW* adam) {
  if (!adam->has_beta1()) adam->set_beta1(0.9f);
  if (!adam->has_beta2()) adam->set_beta2(0.999f);
  if (!adam->has_epsilon()) adam->set_epsilon(1e-8f);
}

// Completes the algorithm of an OptimizerConfig, or of one of its groups.
template <typename Config>
void SetKind(Config* config) {
  if (config->has_momentum() && !config->momentum().has_momentum()) {
    config->mutable_momentum()->set_momentum(0.9f);
  }
  if (config->has_adagrad()) SetAdagrad(config->mutable_adagrad());
  if (config->has_row_wise_adagrad()) {
    SetRowWiseAdagrad(config->mutable_row_wise_adagrad());
  }
  if (config->has_rmsprop()) SetRmsProp(config->mutable_rmsprop());
  if (config->has_adam()) SetAdam(config->mutable_adam());
  if (config->has_adamw()) SetAdam(config->mutable_adamw());
  if (config->has_adamw() && !config->adamw().has_weight_decay()) {
    config->mutable_adamw()->set_weight_decay(0.01f);
  }
  if (config->has_ftrl() && !config->ftrl().has_initial_accumulator()) {
    config->mutable_ftrl()->set_initial_accumulator(0.1f);
  }
}

void SetOptimizer(v1::OptimizerConfig* optimizer) {
  SetKind(optimizer);
  for (v1::OptimizerConfig::Group& group : *optimizer->mutable_groups()) SetKind(&group);
}

template <typename Generated>
void SetRecords(Generated* generated) {
  if (generated->train_records() == 0) generated->set_train_records(20000);
  if (generated->eval_records() == 0) generated->set_eval_records(4000);
}

void SetStream(v1::DataConfig* data) {
  if (data->stream().end_file().empty()) data->mutable_stream()->set_end_file("_END");
  data->set_sequential(true);
}

// Without a source records are digits.
void SetData(v1::DataConfig* data) {
  if (data->has_stream()) SetStream(data);
  switch (data->source_case()) {
    case v1::DataConfig::kGeneratedRegression:
      return SetRecords(data->mutable_generated_regression());
    case v1::DataConfig::kGeneratedTextures:
      return SetRecords(data->mutable_generated_textures());
    case v1::DataConfig::kGeneratedVisits:
      return SetRecords(data->mutable_generated_visits());
    case v1::DataConfig::kGeneratedClicks:
      return SetRecords(data->mutable_generated_clicks());
    case v1::DataConfig::kGeneratedCtr:
      return SetRecords(data->mutable_generated_ctr());
    case v1::DataConfig::kGeneratedPairs:
      return SetRecords(data->mutable_generated_pairs());
    case v1::DataConfig::kLibsvm:
    case v1::DataConfig::kLibffm:
    case v1::DataConfig::kCriteo:
    case v1::DataConfig::kCsv:
    case v1::DataConfig::kTfRecord:
    case v1::DataConfig::kNpz:
    case v1::DataConfig::kParquet:
    case v1::DataConfig::kColumnar:
    case v1::DataConfig::kExternal:
      return;
    case v1::DataConfig::kGenerated:
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  SetRecords(data->mutable_generated());
}

void SetCheckpoint(v1::CheckpointConfig* checkpoint) {
  if (checkpoint->save_seconds() == 0 && checkpoint->save_steps() == 0) {
    checkpoint->set_save_seconds(600);
  }
  if (!checkpoint->has_keep_max()) checkpoint->set_keep_max(5);
  if (checkpoint->full_every() == 1) checkpoint->clear_full_every();
}

void SetExporter(v1::EvaluationConfig::Exporter* exporter) {
  if (exporter->has_latest() && exporter->latest().keep() == 0) {
    exporter->mutable_latest()->set_keep(5);
  }
  if (!exporter->has_best()) return;
  v1::EvaluationConfig::Exporter::Best* best = exporter->mutable_best();
  if (best->metric().empty()) best->set_metric("loss");
  if (best->keep() == 0) best->set_keep(1);
}

void SetEvaluation(v1::LossConfig::Kind loss, v1::EvaluationConfig* evaluation) {
  if (evaluation->batch_size() == 0) evaluation->set_batch_size(500);
  if (evaluation->final_timeout_seconds() == 0) evaluation->set_final_timeout_seconds(600);
  const bool classifies = loss == v1::LossConfig::SOFTMAX_CROSS_ENTROPY ||
                          loss == v1::LossConfig::SIGMOID_CROSS_ENTROPY ||
                          loss == v1::LossConfig::IN_BATCH_SOFTMAX;
  if (classifies && evaluation->metrics().empty()) evaluation->add_metrics()->mutable_accuracy();
  if (evaluation->has_early_stopping() && evaluation->early_stopping().metric().empty()) {
    evaluation->mutable_early_stopping()->set_metric("loss");
  }
  for (v1::EvaluationConfig::Exporter& exporter : *evaluation->mutable_exporters()) {
    SetExporter(&exporter);
  }
}

void SetTransfer(v1::TransferConfig* transfer) {
  if (transfer->depth() == 0) transfer->set_depth(1);
  for (v1::TransferConfig::Group& group : *transfer->mutable_groups()) {
    if (group.top_k_fraction() == 0) group.set_top_k_fraction(0.01f);
    if (group.min_elements() == 0) group.set_min_elements(1024);
  }
}

void SetDelayCompensation(v1::StaleGradientConfig::DelayCompensation* delay) {
  if (!delay->has_lambda()) delay->set_lambda(2);
  if (!delay->has_decay()) delay->set_decay(0.95f);
  if (!delay->has_epsilon()) delay->set_epsilon(1e-7f);
}

void SetConsistency(v1::ConsistencyConfig* consistency) {
  v1::ConsistencyMode* mode = consistency->mutable_mode();
  if (mode->has_synchronous() && mode->synchronous().total_replicas() == 0) {
    mode->mutable_synchronous()->set_total_replicas(mode->synchronous().replicas_to_aggregate());
  }
  v1::StaleGradientConfig* stale = consistency->mutable_stale_gradients();
  if (stale->has_delay_compensation()) SetDelayCompensation(stale->mutable_delay_compensation());
}

void SetInitialValues(v1::InitialValuesConfig* config) {
  using FromFile = v1::InitialValuesConfig::FromFile;
  for (v1::InitialValuesConfig::Group& group : *config->mutable_groups()) {
    if (group.has_from() && group.from().missing() == FromFile::MISSING_UNSPECIFIED) {
      group.mutable_from()->set_missing(FromFile::ERROR);
    }
  }
}

}  // namespace

void SetTrainConfigDefaults(v1::TrainConfig* config) {
  SetModel(config->mutable_model());
  SetOptimizer(config->mutable_optimizer());
  v1::LearningRateConfig* learning_rate = config->mutable_learning_rate();
  if (learning_rate->schedule_case() == v1::LearningRateConfig::SCHEDULE_NOT_SET) {
    learning_rate->mutable_constant();
  }
  SetData(config->mutable_data());
  if (config->train().summary_steps() == 0) config->mutable_train()->set_summary_steps(100);
  SetCheckpoint(config->mutable_checkpoint());
  const v1::ModelConfig& model = config->model();
  const v1::LossConfig& main_loss = model.losses().empty() ? model.loss() : model.losses(0);
  SetEvaluation(main_loss.kind(), config->mutable_evaluation());
  SetTransfer(config->mutable_transfer());
  SetConsistency(config->mutable_consistency());
  // What says nothing is not in the hash either.
  if (config->placement().groups().empty()) config->clear_placement();
  if (config->collective().ByteSizeLong() == 0) config->clear_collective();
  if (config->initial_values().groups().empty()) {
    config->clear_initial_values();
  } else {
    SetInitialValues(config->mutable_initial_values());
  }
}

}  // namespace keelson
