// The description of a run in TensorBoard, beside its curves.
#ifndef KEELSON_CORE_CONFIG_RUN_DESCRIPTION_H_
#define KEELSON_CORE_CONFIG_RUN_DESCRIPTION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/summary/event_writer.h"
#include "core/summary/hparams.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The settings by which runs are compared ("model", "loss", "optimizer", "learning_rate",
// "batch_size", "mode" …, the same ones for every run). `config` is final.
absl::StatusOr<Hparams> DescribeHparams(const v1::TrainConfig& config);

// Writes the model's layers and the configuration as texts with the tags "model" and "config", and
// the hparams. Call once per start of a chief. Errors: those of DescribeHparams and of the writer.
absl::Status WriteRunDescription(const v1::TrainConfig& config, EventWriter* writer);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_RUN_DESCRIPTION_H_
