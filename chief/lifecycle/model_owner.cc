#include "chief/lifecycle/model_owner.h"

#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/boot_id.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/cluster/job_name.h"
#include "core/config/config_difference.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

// Settings that an error names; of more only the number is said.
constexpr size_t kNamedSettings = 6;

std::string TextOf(const v1::TrainConfig& config) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(config, &text);
  return text;
}

// A snapshot restores wherever its variables are placed.
bool TrainsTheSame(const std::vector<SettingDifference>& differences) {
  return std::all_of(differences.begin(), differences.end(), [](const SettingDifference& each) {
    return each.field == "train.max_steps" || each.field == "train.epochs" ||
           absl::StartsWith(each.field, "placement");
  });
}

std::string Join(const std::vector<SettingDifference>& differences) {
  const size_t named = std::min(differences.size(), kNamedSettings);
  std::string text = absl::StrJoin(
      differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(named), "; ",
      [](std::string* out, const SettingDifference& each) { out->append(each.ToString()); });
  if (named < differences.size()) absl::StrAppend(&text, "; ", differences.size() - named, " more");
  return text;
}

// The model was trained with another configuration.
absl::Status TrainOn(const std::string& model_dir, bool accept, absl::string_view difference) {
  if (accept) {
    LogInfo(model_dir, " is trained on with another configuration: ", difference);
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "checkpoint.model_dir ", model_dir,
      ": its model was trained with another configuration: ", difference,
      "; --accept_new_config trains it on with this one, another --model_dir begins a new one"));
}

// The predecessor's configuration, with the defaults of this build.
absl::StatusOr<v1::TrainConfig> ConfigOf(const v1::JobFile& job) {
  ASSIGN_OR_RETURN(v1::TrainConfig config, ParseTrainConfig(job.config(), "its config"));
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return config;
}

absl::Status CheckConfig(const RoleContext& context, bool accept, const v1::JobFile& job) {
  const std::string& model_dir = context.config.checkpoint().model_dir();
  // Nobody has trained since the file was made.
  if (job.config_hash().empty()) return absl::OkStatus();
  if (job.config_hash() == HashToString(context.config_hash)) return absl::OkStatus();
  const absl::StatusOr<v1::TrainConfig> before = ConfigOf(job);
  if (!before.ok()) {
    return TrainOn(
        model_dir, accept,
        absl::StrCat("expected the hash ", job.config_hash(), ", found ",
                     HashToString(context.config_hash), " (", before.status().message(), ")"));
  }
  const std::vector<SettingDifference> differences = ConfigDifference(*before, context.config);
  if (!TrainsTheSame(differences)) return TrainOn(model_dir, accept, Join(differences));
  if (!differences.empty()) LogInfo(model_dir, " is trained on: ", Join(differences));
  return absl::OkStatus();
}

v1::JobFile Describe(const RoleContext& context, absl::Duration lease) {
  v1::JobFile self;
  self.set_owner(RandomId());
  self.set_job(JobNameOf(context.cluster));
  self.set_task(context.self.ToString());
  self.set_host(context.peer.substr(0, context.peer.rfind(':')));
  self.set_pid(getpid());
  self.set_boot_id(BootId());
  self.set_lease_seconds(absl::ToInt64Seconds(lease));
  self.set_config_hash(HashToString(context.config_hash));
  self.set_config(TextOf(WithoutDirectories(context.config)));
  return self;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryOwner>> TakeModelDirectory(const RoleContext& context,
                                                                   const OwnershipOptions& options,
                                                                   FileSystem* file_system,
                                                                   const Clock* clock,
                                                                   StopSignal* stop) {
  RETURN_IF_ERROR(RequireModelDir(context.config));
  const std::string& model_dir = context.config.checkpoint().model_dir();
  DirectoryOwner::Options owner;
  owner.model_dir = model_dir;
  owner.self = Describe(context, options.lease);
  owner.may_follow = [context, model_dir, file_system, clock,
                      accept = options.accept_new_config](const v1::JobFile& job) {
    const CheckpointDirectory directory(file_system, model_dir, clock);
    const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = directory.ListNamed();
    if (!snapshots.ok()) return accept ? absl::OkStatus() : snapshots.status();
    return snapshots->empty() ? absl::OkStatus() : CheckConfig(context, accept, job);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryOwner> taken,
                   DirectoryOwner::Take(std::move(owner), file_system, clock, stop));
  if (!taken->heir()) LogInfo("owns ", model_dir, ", term ", taken->term());
  return taken;
}

}  // namespace keelson
