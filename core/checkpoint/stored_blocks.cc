#include "core/checkpoint/stored_blocks.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"

namespace keelson {
namespace {

constexpr absl::string_view kShardStatePrefix = "_keelson/shard-";

int64_t EndOf(const v1::ShardState::Block& block) {
  return block.first_element() + block.num_elements();
}

}  // namespace

std::string ShardStateName(size_t shard, size_t num_shards) {
  return absl::StrCat(kShardStatePrefix, shard, "-of-", num_shards);
}

std::string SlotTensorName(absl::string_view variable, absl::string_view slot) {
  return absl::StrCat(variable, "/", slot);
}

absl::StatusOr<std::unique_ptr<StoredBlocks>> StoredBlocks::Open(
    const std::string& prefix, std::vector<VariableSpec> variables, std::vector<SlotSpec> slots,
    FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix, file_system));
  std::unique_ptr<StoredBlocks> stored(
      new StoredBlocks(std::move(bundle), std::move(variables), slots));
  RETURN_IF_ERROR(stored->FindArrays());
  RETURN_IF_ERROR(stored->ReadShardStates());
  RETURN_IF_ERROR(stored->SortBlocks());
  return stored;
}

StoredBlocks::StoredBlocks(std::unique_ptr<BundleReader> bundle,
                           std::vector<VariableSpec> variables, const std::vector<SlotSpec>& slots)
    : bundle_(std::move(bundle)) {
  for (VariableSpec& spec : variables) {
    Variable variable;
    if (spec.trained()) {
      for (const SlotSpec& slot : slots) {
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

absl::Status StoredBlocks::ReadShardStates() {
  for (const TensorInfo& tensor : bundle_->List()) {
    if (!absl::StartsWith(tensor.name, kShardStatePrefix)) continue;
    ASSIGN_OR_RETURN(const std::string bytes, bundle_->ReadString(tensor.name));
    v1::ShardState state;
    if (!state.ParseFromString(bytes)) {
      return absl::DataLossError(
          absl::StrCat(bundle_->prefix(), ": ", tensor.name, ": not a ShardState"));
    }
    RETURN_IF_ERROR(AddShardState(tensor.name, state));
  }
  return absl::OkStatus();
}

absl::Status StoredBlocks::AddShardState(const std::string& name, const v1::ShardState& state) {
  shard_step_ = std::max(shard_step_, state.shard_step());
  std::map<absl::string_view, Variable*> by_name;
  for (Variable& variable : variables_) by_name[variable.spec.name] = &variable;
  for (const v1::ShardState::Block& block : state.blocks()) {
    if (block.variable() >= static_cast<uint32_t>(state.variables_size())) {
      return absl::DataLossError(absl::StrCat(bundle_->prefix(), ": ", name, ": variable ",
                                              block.variable(), ", expected below ",
                                              state.variables_size()));
    }
    const auto found = by_name.find(state.variables(static_cast<int>(block.variable())));
    if (found != by_name.end()) found->second->blocks.push_back(block);
  }
  return absl::OkStatus();
}

absl::Status StoredBlocks::SortBlocks() {
  for (Variable& variable : variables_) {
    std::sort(variable.blocks.begin(), variable.blocks.end(),
              [](const v1::ShardState::Block& a, const v1::ShardState::Block& b) {
                return a.first_element() < b.first_element();
              });
    int64_t end = 0;
    for (const v1::ShardState::Block& block : variable.blocks) {
      if (block.first_element() < end || block.num_elements() < 0 ||
          block.num_elements() > variable.spec.shape.num_elements() - block.first_element()) {
        return absl::DataLossError(absl::StrCat(
            bundle_->prefix(), ": ", variable.spec.name, ": block of ", block.num_elements(),
            " elements from ", block.first_element(), ", expected from ", end, " to at most ",
            variable.spec.shape.num_elements()));
      }
      end = EndOf(block);
    }
  }
  return absl::OkStatus();
}

StoredBlock StoredBlocks::StateOf(const Variable& variable, int64_t begin, int64_t end) {
  StoredBlock state;
  auto block = std::partition_point(
      variable.blocks.begin(), variable.blocks.end(),
      [&](const v1::ShardState::Block& candidate) { return EndOf(candidate) <= begin; });
  for (; block != variable.blocks.end() && block->first_element() < end; ++block) {
    state.updates = std::max(state.updates, block->updates());
    state.version = std::max(state.version, block->version());
    if (block->first_element() == begin && EndOf(*block) == end) {
      state.applied.assign(block->applied().begin(), block->applied().end());
    }
  }
  return state;
}

}  // namespace keelson
