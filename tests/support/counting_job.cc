#include "tests/support/counting_job.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

// learning_rate.base * optimizer.clip_value below.
constexpr float kCountedStep = 0x1p-24f;
// Start at 0, and are moved by every push.
constexpr absl::string_view kCounters[] = {"hidden/kernel", "hidden/bias", "scores/bias"};

absl::Status Disagreement(const std::string& what, int64_t expected, double found) {
  return absl::DataLossError(absl::StrCat(what, ": expected ", expected, ", found ", found));
}

absl::StatusOr<std::vector<v1::ShardState>> ReadShardStates(const BundleReader& reader) {
  std::vector<v1::ShardState> states;
  for (const TensorInfo& tensor : reader.List()) {
    if (!absl::StartsWith(tensor.name, "_keelson/shard-")) continue;
    ASSIGN_OR_RETURN(const std::string bytes, reader.ReadString(tensor.name));
    if (!states.emplace_back().ParseFromString(bytes)) {
      return absl::DataLossError(
          absl::StrCat(reader.prefix(), ": ", tensor.name, " is no message"));
    }
  }
  return states;
}

absl::Status CheckValues(const BundleReader& reader, const std::string& variable, int64_t updates) {
  ASSIGN_OR_RETURN(const Tensor tensor, reader.ReadTensor(variable));
  for (const float value : tensor.span()) {
    const double counted = std::abs(static_cast<double>(value)) / kCountedStep;
    if (counted != static_cast<double>(updates)) {
      return Disagreement(absl::StrCat(reader.prefix(), ": pushes in the values of ", variable),
                          updates, counted);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckShard(const BundleReader& reader, const v1::ShardState& state) {
  const int64_t updates = state.blocks().empty() ? 0 : state.blocks(0).updates();
  for (const v1::ShardState::Block& block : state.blocks()) {
    const std::string& variable = state.variables(static_cast<int>(block.variable()));
    if (block.updates() != updates) {
      return Disagreement(absl::StrCat(reader.prefix(), ": updates of ", variable), updates,
                          static_cast<double>(block.updates()));
    }
    if (std::count(std::begin(kCounters), std::end(kCounters), variable) > 0) {
      RETURN_IF_ERROR(CheckValues(reader, variable, updates));
    }
  }
  // A restored shard goes on from the highest step of all shards, which may have lost less.
  if (state.shard_step() < updates) {
    return Disagreement(absl::StrCat(reader.prefix(), ": the shard's step, at least"), updates,
                        static_cast<double>(state.shard_step()));
  }
  return updates;
}

}  // namespace

std::string CountingJobConfig(const CountingJobOptions& options) {
  return absl::StrCat(
      R"(
    model {
      name: "counting"
      input_shape: [28, 28, 1]
      layers { avg_pool { size: 28 } }
      layers { flatten {} }
      layers { name: "hidden" dense { units: 4 kernel_initializer: ZEROS } }
      layers { name: "scores" dense { units: 1 } }
      loss { kind: MEAN_SQUARED_ERROR }
    }
    optimizer { sgd {} clip_value: 0.0009765625 }
    learning_rate { base: 0.00006103515625 }
    data { generated { train_records: 2000 eval_records: 100 } }
    train { batch_size: 32 seed: 3 summary_steps: 10 max_steps: )",
      options.max_steps, R"( }
    checkpoint { save_steps: )",
      options.save_steps, " keep_max: ", options.keep_max, R"( }
    evaluation { final_timeout_seconds: 60 }
  )",
      options.mode.empty() ? "" : absl::StrCat("consistency { mode { ", options.mode, " } }\n"));
}

absl::StatusOr<CountedSnapshot> ReadCountedSnapshot(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(prefix));
  RETURN_IF_ERROR(reader->VerifyAll());
  CountedSnapshot snapshot;
  ASSIGN_OR_RETURN(snapshot.global_step, reader->ReadInt64("global_step"));
  ASSIGN_OR_RETURN(const std::vector<v1::ShardState> states, ReadShardStates(*reader));
  for (const v1::ShardState& state : states) {
    ASSIGN_OR_RETURN(const int64_t updates, CheckShard(*reader, state));
    snapshot.updates.push_back(updates);
  }
  return snapshot;
}

absl::StatusOr<CountedSnapshot> ReadLatestCounted(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots,
                   CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List());
  if (snapshots.empty()) return absl::NotFoundError(absl::StrCat("no snapshot in ", model_dir));
  return ReadCountedSnapshot(snapshots.back().prefix);
}

}  // namespace keelson
