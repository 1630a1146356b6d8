#include "chief/proposal/job_proposals.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/config/config_difference.h"
#include "core/config/initial_values.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr size_t kLongestPart = 1 << 20;
// Settings that differ are named up to this number.
constexpr size_t kNamedDifferences = 3;

absl::Status Refused(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("ProposeJob: ", text));
}

// The proposed configuration, completed. INVALID_ARGUMENT: see AnswerProposal.
absl::StatusOr<v1::TrainConfig> FinalConfigOf(const v1::ProposeJobRequest& request) {
  v1::TrainConfig config = WithoutDirectories(request.config());
  if (!config.model().has_external()) {
    return Refused("model: expected external, found a model that needs no script");
  }
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  return config;
}

std::string Text(const v1::ExternalVariable& variable) {
  return absl::StrCat(variable.name(), " [", absl::StrJoin(variable.shape(), ", "), "]");
}

// Names the first variable that differs, in the words of those who wrote the model; nothing: they
// are the same.
std::optional<std::string> VariableDifference(const v1::ExternalModel& expected,
                                              const v1::ExternalModel& found) {
  const int count = std::max(expected.variables_size(), found.variables_size());
  for (int i = 0; i < count; ++i) {
    const std::string ours = i < expected.variables_size() ? Text(expected.variables(i)) : "none";
    const std::string theirs = i < found.variables_size() ? Text(found.variables(i)) : "none";
    if (ours == theirs) continue;
    return absl::StrCat("variable ", i + 1, ": expected ", ours, ", found ", theirs);
  }
  return std::nullopt;
}

// Nothing: they are the same.
std::optional<std::string> DifferenceOf(const v1::TrainConfig& expected,
                                        const v1::TrainConfig& found) {
  if (auto text = VariableDifference(expected.model().external(), found.model().external())) {
    return text;
  }
  const std::vector<SettingDifference> differences = ConfigDifference(expected, found);
  if (differences.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(differences.size(), kNamedDifferences); ++i) {
    texts.push_back(differences[i].ToString());
  }
  return absl::StrJoin(texts, "; ");
}

absl::Status CheckValues(const v1::TrainConfig& config, const v1::ProposeJobRequest& request) {
  if (request.proposal_id() == 0) return Refused("proposal_id: expected a random number, found 0");
  if (request.initial_bytes() < 0) {
    return Refused(absl::StrCat("initial_bytes: expected >= 0, found ", request.initial_bytes()));
  }
  if (request.part().size() > kLongestPart) {
    return Refused(absl::StrCat("part: expected at most ", kLongestPart, " bytes, found ",
                                request.part().size()));
  }
  if (request.initial_bytes() == 0 && HasProposedValues(config.initial_values())) {
    return Refused(absl::StrCat("initial_bytes: expected those of a file, which initial_values ",
                                "calls \"", kProposedValues, "\", found 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerProposal(const v1::TrainConfig& config, const v1::ProposeJobRequest& request,
                            v1::ProposeJobResponse* response) {
  if (request.has_config()) {
    ASSIGN_OR_RETURN(v1::TrainConfig found, FinalConfigOf(request));
    v1::ConsistencyMode* const mode = found.mutable_consistency()->mutable_mode();
    if (mode->mode_case() == v1::ConsistencyMode::MODE_NOT_SET) {
      *mode = config.consistency().mode();  // The cluster's, which the chief knows.
    }
    const std::optional<std::string> difference = DifferenceOf(config, found);
    if (difference.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(*difference, ": all scripts of a job describe the same one"));
    }
  }
  *response->mutable_config() = WithoutDirectories(config);
  return absl::OkStatus();
}

absl::Status JobProposals::Propose(const v1::ProposeJobRequest& request,
                                   v1::ProposeJobResponse* response) {
  MutexLock lock(&mu_);
  if (decided_.has_value()) return AnswerProposal(*decided_, request, response);
  if (!request.has_config()) {
    return absl::UnavailableError("the chief waits for a script that says what is trained");
  }
  ASSIGN_OR_RETURN(v1::TrainConfig config, FinalConfigOf(request));
  RETURN_IF_ERROR(CheckValues(config, request));
  const absl::Duration now = clock_->Monotonic();
  const bool free = !arriving_.has_value() || now - arriving_->heard > kSilence;
  if (!free && arriving_->id != request.proposal_id()) {
    return absl::UnavailableError("another script's proposal is on its way");
  }
  if (!arriving_.has_value() || arriving_->id != request.proposal_id()) {
    RETURN_IF_ERROR(Begin(request, std::move(config)));
  }
  arriving_->heard = now;
  RETURN_IF_ERROR(Take(request));
  ReceivedValues* const values = arriving_->job.values.get();
  if (values != nullptr && values->bytes() < arriving_->initial_bytes) {
    response->set_next_offset(values->bytes());
    return absl::OkStatus();
  }
  if (values != nullptr) RETURN_IF_ERROR(values->Finish());
  decided_ = arriving_->job.config;
  job_ = std::move(arriving_->job);
  arriving_.reset();
  decided_now_.NotifyAll();
  return AnswerProposal(*decided_, request, response);
}

absl::Status JobProposals::Begin(const v1::ProposeJobRequest& request, v1::TrainConfig config) {
  arriving_.reset();
  config.mutable_checkpoint()->set_model_dir(model_dir_);
  Arriving next = {
      request.proposal_id(), request.initial_bytes(), {}, {std::move(config), nullptr}};
  ASSIGN_OR_RETURN(const bool wanted, WantsValues());
  if (wanted && request.initial_bytes() > 0) {
    ASSIGN_OR_RETURN(next.job.values,
                     ReceivedValues::Create(file_system_, model_dir_,
                                            absl::StrCat(absl::Hex(request.proposal_id()))));
  }
  arriving_ = std::move(next);
  return absl::OkStatus();
}

absl::Status JobProposals::Take(const v1::ProposeJobRequest& request) {
  ReceivedValues* const values = arriving_->job.values.get();
  if (values == nullptr || request.part().empty()) return absl::OkStatus();
  if (request.offset() < values->bytes()) return absl::OkStatus();  // It is sent again.
  const int64_t left = arriving_->initial_bytes - values->bytes();
  if (request.offset() == values->bytes() && static_cast<int64_t>(request.part().size()) <= left) {
    return values->Append(request.part());
  }
  return Refused(absl::StrCat("part: expected the bytes from ", values->bytes(), " on, at most ",
                              left, ", found ", request.part().size(), " from ", request.offset()));
}

absl::StatusOr<bool> JobProposals::WantsValues() const {
  const CheckpointDirectory directory(file_system_, model_dir_, clock_);
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory.ListNamed());
  if (snapshots.empty()) return true;
  ASSIGN_OR_RETURN(const bool kept, file_system_->Exists(ProposedValuesPath(model_dir_)));
  return !kept;
}

absl::StatusOr<std::optional<ProposedJob>> JobProposals::Await(absl::Duration patience,
                                                               const StopSignal& stop) {
  const StopCallback wake(&stop, [this] {
    MutexLock lock(&mu_);
    decided_now_.NotifyAll();
  });
  const absl::Duration until = clock_->Monotonic() + patience;
  MutexLock lock(&mu_);
  while (!job_.has_value()) {
    if (stop.raised()) return absl::CancelledError("while waiting for a script");
    if (clock_->Monotonic() >= until) return std::nullopt;
    clock_->WaitUntil(&mu_, &decided_now_, until);
  }
  return std::exchange(job_, std::nullopt);
}

}  // namespace keelson
