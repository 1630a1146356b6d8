#include "chief/servers/warm_start_storage.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/servers/shard_chunks.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// As a shard that is made by the server's own initializers has it.
constexpr uint64_t kFirstVersion = 1;

absl::StatusOr<v1::InitializeChunk::Block> BlockOf(const WarmStart& warm, size_t variable,
                                                   const ShardChunks::Position& position) {
  v1::InitializeChunk::Block block;
  block.set_version(kFirstVersion);
  if (warm.origin(variable) == nullptr) return block;
  std::string& bytes = *block.mutable_elements();
  bytes.resize(position.num_elements * sizeof(float));
  auto* const floats = reinterpret_cast<float*>(bytes.data());
  RETURN_IF_ERROR(
      warm.Read(variable, position.first_element, absl::MakeSpan(floats, position.num_elements)));
  return block;
}

}  // namespace

absl::Status WarmStartStorage::PrepareInitialValues(const StopSignal& stop) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const WarmStart> warm, Opened());
  return warm->Verify(stop);
}

absl::StatusOr<std::shared_ptr<const WarmStart>> WarmStartStorage::Opened() {
  MutexLock lock(&mu_);
  if (warm_ == nullptr) {
    ASSIGN_OR_RETURN(warm_, WarmStart::Open(config_, variables_, seed_));
    LogInfo(warm_->Report());
  }
  return warm_;
}

absl::StatusOr<std::vector<size_t>> WarmStartStorage::PositionsOf(
    const Placement& placement) const {
  std::map<absl::string_view, size_t> own;
  for (size_t v = 0; v < variables_.size(); ++v) own[variables_[v].name] = v;
  std::vector<size_t> positions;
  for (const VariableSpec& placed : placement.variables()) {
    const auto position = own.find(placed.name);
    if (position == own.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a variable of the model, found ", placed.name));
    }
    positions.push_back(position->second);
  }
  return positions;
}

absl::Status WarmStartStorage::Write(ParameterControl* server,
                                     const v1::WriteSnapshotRequest& request,
                                     v1::WriteSnapshotResponse* response) {
  return snapshots_->Write(server, request, response);
}

absl::Status WarmStartStorage::Initialize(ParameterControl* server,
                                          const v1::InitializeShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  if (request.has_restore_step()) return snapshots_->Initialize(server, request, response);
  ASSIGN_OR_RETURN(const std::shared_ptr<const WarmStart> warm, Opened());
  ASSIGN_OR_RETURN(const Placement placement, Placement::FromProto(request.placement()));
  ASSIGN_OR_RETURN(const std::vector<size_t> positions, PositionsOf(placement));
  ShardChunks chunks(&placement, request.shard(), [&](const ShardChunks::Position& position) {
    return BlockOf(*warm, positions[position.variable], position);
  });
  v1::InitializeChunk first;
  *first.mutable_start() = request;
  return server->InitializeStreamed(
      first, [&] { return chunks.Next(); }, response);
}

}  // namespace keelson
