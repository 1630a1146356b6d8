#include "core/checkpoint/stored_blocks.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {
namespace {

bool Wants(const std::vector<ElementRange>& wanted, int64_t begin, int64_t end) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const ElementRange& range) {
    return begin < range.end && range.begin < end;
  });
}

// -1: none.
template <typename State>
int64_t RoundOf(const State& state) {
  return state.has_committed_round() ? state.committed_round() : -1;
}

}  // namespace

std::string SlotTensorName(absl::string_view variable, absl::string_view slot) {
  return absl::StrCat(variable, "/", slot);
}

absl::StatusOr<std::unique_ptr<StoredBlocks>> StoredBlocks::Open(
    const std::string& prefix, std::vector<VariableSpec> variables,
    std::vector<std::vector<SlotSpec>> slots, FileSystem* file_system, const ShardPart* part) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix, file_system));
  std::unique_ptr<StoredBlocks> stored(
      new StoredBlocks(std::move(bundle), std::move(variables), slots));
  RETURN_IF_ERROR(stored->FindArrays());
  stored->Want(part);
  RETURN_IF_ERROR(stored->ReadJobState());
  RETURN_IF_ERROR(stored->ReadShardStates(part));
  return stored;
}

StoredBlocks::StoredBlocks(std::unique_ptr<BundleReader> bundle,
                           std::vector<VariableSpec> variables,
                           const std::vector<std::vector<SlotSpec>>& slots)
    : bundle_(std::move(bundle)) {
  for (size_t v = 0; v < variables.size(); ++v) {
    VariableSpec& spec = variables[v];
    Variable variable;
    if (!slots.empty()) {
      for (const SlotSpec& slot : slots[v]) {
        variable.slots.push_back({SlotTensorName(spec.name, slot.name), slot.initial_value});
      }
    }
    variable.spec = std::move(spec);
    variables_.push_back(std::move(variable));
  }
}

absl::Status StoredBlocks::Read(size_t variable, int64_t first_element, absl::Span<float> values,
                                absl::Span<const absl::Span<float>> slots,
                                StoredBlock* state) const {
  const Variable& from = variables_[variable];
  RETURN_IF_ERROR(bundle_->ReadElements(from.spec.name, first_element, values));
  for (size_t i = 0; i < slots.size(); ++i) {
    const SlotArray& slot = from.slots[i];
    if (slot.stored) {
      RETURN_IF_ERROR(bundle_->ReadElements(slot.name, first_element, slots[i]));
    } else {
      std::fill(slots[i].begin(), slots[i].end(), slot.initial_value);
    }
  }
  *state = StateOf(from, first_element, first_element + static_cast<int64_t>(values.size()));
  return absl::OkStatus();
}

absl::Status StoredBlocks::CheckArray(const std::string& name, const Shape& shape) const {
  ASSIGN_OR_RETURN(const TensorInfo stored, bundle_->Info(name));
  if (stored.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(bundle_->prefix(), ": ", name,
                                                   ": expected shape ", shape.ToString(),
                                                   ", found ", stored.shape.ToString()));
  }
  if (!IsNumeric(stored.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        bundle_->prefix(), ": ", name, ": expected numbers, found ", DtypeName(stored.dtype)));
  }
  return absl::OkStatus();
}

absl::Status StoredBlocks::FindArrays() {
  std::vector<std::string> missing_slots;
  for (Variable& variable : variables_) {
    if (!bundle_->Contains(variable.spec.name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          bundle_->prefix(), ": has no variable ", variable.spec.name, "; it is of another model"));
    }
    RETURN_IF_ERROR(CheckArray(variable.spec.name, variable.spec.shape));
    for (SlotArray& slot : variable.slots) {
      slot.stored = bundle_->Contains(slot.name);
      if (slot.stored) {
        RETURN_IF_ERROR(CheckArray(slot.name, variable.spec.shape));
      } else {
        missing_slots.push_back(slot.name);
      }
    }
  }
  if (!missing_slots.empty()) {
    LogWarning(bundle_->prefix(), ": lacks ", missing_slots.size(),
               " of the optimizer's slots (first: ", missing_slots.front(),
               "); they start with their initial values");
  }
  return absl::OkStatus();
}

void StoredBlocks::Want(const ShardPart* part) {
  if (part != nullptr) {
    for (const ElementRange& range : part->ranges) {
      variables_[range.variable].wanted.push_back(range);
    }
    return;
  }
  for (size_t v = 0; v < variables_.size(); ++v) {
    variables_[v].wanted.push_back({v, 0, variables_[v].spec.shape.num_elements()});
  }
}

absl::Status StoredBlocks::ReadJobState() {
  ASSIGN_OR_RETURN(const std::optional<v1::JobState> job, keelson::ReadJobState(*bundle_));
  if (job.has_value() && job->format() > 0) job_round_ = RoundOf(*job);
  return absl::OkStatus();
}

absl::Status StoredBlocks::CheckRound(const std::string& name, const v1::ShardState& state) const {
  if (!job_round_.has_value() || state.format() == 0) return absl::OkStatus();
  if (RoundOf(state) == *job_round_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(bundle_->prefix(), ": ", name,
                                          ": expected committed round ", *job_round_, " as in ",
                                          kJobStateName, ", found ", RoundOf(state)));
}

absl::Status StoredBlocks::ReadShardStates(const ShardPart* part) {
  const std::string own = part == nullptr ? "" : ShardStateName(part->shard, part->num_shards);
  if (part != nullptr && bundle_->Contains(own)) {
    RETURN_IF_ERROR(ReadShardState(own));
    RETURN_IF_ERROR(SortBlocks());
    if (Complete()) return absl::OkStatus();
  }
  for (const TensorInfo& tensor : bundle_->List()) {
    if (!absl::StartsWith(tensor.name, kShardStatePrefix) || tensor.name == own) continue;
    RETURN_IF_ERROR(ReadShardState(tensor.name));
  }
  return SortBlocks();
}

absl::Status StoredBlocks::ReadShardState(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string bytes, bundle_->ReadString(name));
  ASSIGN_OR_RETURN(v1::ShardState state, ParseShardState(bytes, bundle_->prefix(), name));
  return AddShardState(name, std::move(state));
}

absl::Status StoredBlocks::CheckBlock(const VariableSpec& variable,
                                      const v1::ShardState::Block& block, int64_t from) const {
  const int64_t most = variable.shape.num_elements();
  const bool fits = block.first_element() >= from && block.num_elements() >= 0 &&
                    block.num_elements() <= most - block.first_element();
  if (fits) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      bundle_->prefix(), ": ", variable.name, ": block of ", block.num_elements(),
      " elements from ", block.first_element(), ", expected from ", from, " to at most ", most));
}

absl::Status StoredBlocks::AddShardState(const std::string& name, v1::ShardState state) {
  RETURN_IF_ERROR(CheckRound(name, state));
  shard_step_ = std::max(shard_step_, state.shard_step());
  if (state.has_committed_round() && state.committed_round() > committed_round_) {
    committed_round_ = state.committed_round();
    committed_contributions_ = state.committed_contributions();
  }
  std::map<absl::string_view, Variable*> by_name;
  for (Variable& variable : variables_) by_name[variable.spec.name] = &variable;
  bool used = false;
  for (int b = 0; b < state.blocks_size(); ++b) {
    const v1::ShardState::Block& block = state.blocks(b);
    if (block.variable() >= static_cast<uint32_t>(state.variables_size())) {
      return absl::DataLossError(absl::StrCat(bundle_->prefix(), ": ", name, ": variable ",
                                              block.variable(), ", expected below ",
                                              state.variables_size()));
    }
    const auto found = by_name.find(state.variables(static_cast<int>(block.variable())));
    if (found == by_name.end()) continue;
    Variable& variable = *found->second;
    RETURN_IF_ERROR(CheckBlock(variable.spec, block, 0));
    const int64_t begin = block.first_element();
    const int64_t end = begin + block.num_elements();
    if (!Wants(variable.wanted, begin, end)) continue;
    used = true;
    variable.blocks.push_back({begin, end, states_.size(), b});
  }
  if (used) states_.push_back(std::move(state));
  return absl::OkStatus();
}

absl::Status StoredBlocks::SortBlocks() {
  for (Variable& variable : variables_) {
    std::sort(variable.blocks.begin(), variable.blocks.end(),
              [](const Entry& a, const Entry& b) { return a.first_element < b.first_element; });
    int64_t end = 0;
    for (const Entry& entry : variable.blocks) {
      RETURN_IF_ERROR(CheckBlock(variable.spec, states_[entry.state].blocks(entry.block), end));
      end = entry.end;
    }
  }
  return absl::OkStatus();
}

bool StoredBlocks::Complete() const {
  return std::all_of(variables_.begin(), variables_.end(), [](const Variable& variable) {
    return std::all_of(variable.wanted.begin(), variable.wanted.end(),
                       [&](const ElementRange& range) {
                         int64_t known = range.begin;
                         for (const Entry& entry : variable.blocks) {
                           if (entry.first_element <= known && known < entry.end) known = entry.end;
                         }
                         return known >= range.end;
                       });
  });
}

StoredBlock StoredBlocks::StateOf(const Variable& variable, int64_t begin, int64_t end) const {
  StoredBlock state;
  auto entry = std::partition_point(variable.blocks.begin(), variable.blocks.end(),
                                    [&](const Entry& candidate) { return candidate.end <= begin; });
  for (; entry != variable.blocks.end() && entry->first_element < end; ++entry) {
    const v1::ShardState& stored = states_[entry->state];
    const v1::ShardState::Block& block = stored.blocks(entry->block);
    state.updates = std::max(state.updates, block.updates());
    state.version = std::max(state.version, block.version());
    if (entry->first_element == begin && entry->end == end) {
      state.applied = AppliedBy(stored, entry->block);
    }
  }
  return state;
}

}  // namespace keelson
