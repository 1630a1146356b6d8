#include "core/model/evaluation_pass.h"

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
  for (const MetricSpec& metric : metrics) {
    sums.correct.push_back(metric.counts_examples()
                               ? CountCorrect(metric, spec_.main_loss().outputs, *scores,
                                              batch.labels[spec_.main_loss().label].span())
                               : 0);
  }
  return sums;
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
  return replicas_->Explain(
      replica().device()->CopyToHost(replica().scores(), absl::MakeSpan(*scores)));
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
