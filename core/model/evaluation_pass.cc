#include "core/model/evaluation_pass.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace keelson {

absl::Status EvaluationPass::Predict(const Batch& batch, std::vector<float>* scores) {
  RETURN_IF_ERROR(Enqueue(batch));
  return DownloadScores(batch, scores);
}

absl::StatusOr<EvaluationSums> EvaluationPass::Evaluate(const Batch& batch,
                                                        absl::Span<const MetricSpec> metrics,
                                                        std::vector<float>* scores) {
  RETURN_IF_ERROR(Enqueue(batch));
  replica().ComputeLosses({batch.size(), /*training=*/false}, /*weight=*/1);
  loss_->Download(*replica().loss_sum());
  RETURN_IF_ERROR(DownloadScores(batch, scores));
  const absl::StatusOr<float> sum = loss_->Await();
  if (!sum.ok()) return replicas_->Explain(sum.status());
  EvaluationSums sums;
  sums.loss = *sum;
  ASSIGN_OR_RETURN(sums.losses, DownloadLosses());
  sums.examples = batch.size();
  ASSIGN_OR_RETURN(sums.correct, CountRight(batch, metrics, *scores));
  return sums;
}

absl::StatusOr<std::vector<int64_t>> EvaluationPass::CountRight(
    const Batch& batch, absl::Span<const MetricSpec> metrics, absl::Span<const float> scores) {
  const LossSpec& loss = spec_.main_loss();
  const bool pairs = loss.kind == LossKind::kInBatchSoftmax;
  const bool counts = std::any_of(metrics.begin(), metrics.end(), [](const MetricSpec& metric) {
    return metric.counts_examples();
  });
  std::vector<float> of_pairs;
  if (pairs && counts) {
    of_pairs.resize(batch.size() * batch.size());
    RETURN_IF_ERROR(replicas_->Explain(
        replica().device()->CopyToHost(replica().pair_scores(), absl::MakeSpan(of_pairs))));
  }
  std::vector<int64_t> right;
  for (const MetricSpec& metric : metrics) {
    if (!metric.counts_examples()) {
      right.push_back(0);
    } else if (pairs) {
      right.push_back(CountCorrectPairs(metric, batch.size(), of_pairs));
    } else {
      right.push_back(CountCorrect(metric, loss.outputs, scores, batch.labels[*loss.label].span()));
    }
  }
  return right;
}

absl::Status EvaluationPass::Enqueue(const Batch& batch) {
  const Pass pass = {batch.size(), /*training=*/false};
  RETURN_IF_ERROR(replica().Reserve(batch, 0, pass.batch, pass.training));
  replica().LoadBatch(batch, 0, pass.batch, pass.training);
  replica().Forward(pass);
  return absl::OkStatus();
}

absl::Status EvaluationPass::DownloadScores(const Batch& batch, std::vector<float>* scores) {
  scores->resize(batch.size() * spec_.main_loss().outputs);
  return replicas_->Explain(replica().device()->CopyToHost(
      replica().MainScores({batch.size(), /*training=*/false}), absl::MakeSpan(*scores)));
}

absl::Status EvaluationPass::DownloadPairs(const Batch& batch, PairVectors* pairs) {
  const int64_t floats = batch.size() * spec_.main_loss().dim;
  for (const auto& [vectors, memory] : {std::pair(&pairs->queries, &replica().queries()),
                                        std::pair(&pairs->items, &replica().items())}) {
    vectors->resize(floats);
    RETURN_IF_ERROR(
        replicas_->Explain(replica().device()->CopyToHost(*memory, absl::MakeSpan(*vectors))));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> EvaluationPass::DownloadLosses() {
  std::vector<double> losses;
  if (spec_.losses.size() == 1) return losses;
  for (size_t i = 0; i < spec_.losses.size(); ++i) {
    float sum = 0;
    RETURN_IF_ERROR(replicas_->Explain(
        replica().device()->CopyToHost(replica().loss_part(i), absl::MakeSpan(&sum, 1))));
    losses.push_back(sum);
  }
  return losses;
}

}  // namespace keelson
