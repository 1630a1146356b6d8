#include "ps_server/parameter_handler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "ps_server/shard_files.h"

namespace keelson {
namespace {

// A block with its position and size, as asked for by a message.
struct AddressedBlock {
  Block* block;
  uint32_t partition;
  uint32_t index;
  int64_t elements;
};

absl::StatusOr<std::vector<AddressedBlock>> Resolve(
    const BlockStore& store, const google::protobuf::RepeatedPtrField<v1::BlockRange>& ranges) {
  std::vector<AddressedBlock> blocks;
  for (const v1::BlockRange& range : ranges) {
    for (uint32_t i = 0; i < range.num_blocks(); ++i) {
      const int64_t index = int64_t{range.first_block()} + i;
      ASSIGN_OR_RETURN(Block * block, store.Find(static_cast<int>(range.partition()), index));
      blocks.push_back({block, range.partition(), static_cast<uint32_t>(index),
                        store.BlockElements(static_cast<int>(range.partition()), index)});
    }
  }
  return blocks;
}

absl::Status CheckPayload(const BlockStore& store, const std::vector<AddressedBlock>& blocks,
                          size_t payload_bytes) {
  int64_t elements = 0;
  for (const AddressedBlock& block : blocks) elements += block.elements;
  const size_t expected = static_cast<size_t>(elements) * sizeof(float);
  if (payload_bytes == expected) return absl::OkStatus();
  const std::string variable =
      blocks.empty() ? "no variable"
                     : store.placement().VariableOf(static_cast<int>(blocks[0].partition)).name;
  return absl::InvalidArgumentError(absl::StrCat("push to ", variable, " …: expected ", expected,
                                                 " bytes of payload, found ", payload_bytes));
}

// Pushes that the shard had counted before this one. Counts this one when its last block was
// applied: of several calls with the same push, also when they run side by side, that is one.
int64_t PushesBefore(const v1::PushRequest& request, bool has_blocks, bool applied,
                     BlockStore* store) {
  if (!request.last_part() || !has_blocks) return store->shard_step();
  if (applied) return store->CountPush();
  return store->shard_step() - 1;  // it has been counted when it was applied
}

}  // namespace

absl::Status ParameterHandler::Initialize(const v1::InitializeShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  if (request.config_hash() != options_.config_hash) {
    const absl::Status mismatch =
        ConfigMismatch(options_.config_hash, request.config_hash(), "the chief");
    LogError(mismatch.message());
    return mismatch;
  }
  MutexLock lock(&initialize_mu_);
  RETURN_IF_ERROR(AdmitChief(request.header().incarnation()));
  const Origin origin = {request.header().incarnation(), request.placement_fingerprint(),
                         request.shard(), request.restore_prefix()};
  if (origin_ != origin) {
    origin_.reset();
    RETURN_IF_ERROR(StartOver(request));
    origin_ = origin;
  }
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::AdmitChief(uint64_t incarnation) {
  if (replaced_chiefs_.count(incarnation) != 0) {
    return absl::AbortedError("Initialize: another chief has taken the caller's place");
  }
  if (chief_.has_value() && *chief_ != incarnation) replaced_chiefs_.insert(*chief_);
  chief_ = incarnation;
  return absl::OkStatus();
}

absl::Status ParameterHandler::StartOver(const v1::InitializeShardRequest& request) {
  {
    // Gone before the new one is made: there may not be memory for both.
    MutexLock lock(&mu_);
    state_ = v1::ShardStatus::INITIALIZING;
    shard_ = nullptr;
  }
  absl::StatusOr<std::unique_ptr<BlockStore>> store = MakeStore(request);
  MutexLock lock(&mu_);
  if (!store.ok()) {
    state_ = v1::ShardStatus::EMPTY;
    return store.status();
  }
  shard_ = std::make_shared<const Shard>(
      Shard{*std::move(store), request.placement_fingerprint(), RandomId()});
  state_ = v1::ShardStatus::READY;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockStore>> ParameterHandler::MakeStore(
    const v1::InitializeShardRequest& request) {
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
  if (placement.Fingerprint() != request.placement_fingerprint() ||
      request.shard() >= static_cast<uint32_t>(placement.num_shards())) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: shard ", request.shard(), " of ", placement.num_shards(),
                     ": the placement does not fit its fingerprint or the shard"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer, CreateOptimizer(request.optimizer()));
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(request.learning_rate(), request.max_steps()));
  const absl::Duration start = clock_->Monotonic();
  BlockStore::Options options = {std::move(placement), static_cast<int>(request.shard()),
                                 std::move(optimizer), std::move(learning_rate)};
  absl::StatusOr<std::unique_ptr<BlockStore>> store =
      request.restore_prefix().empty() ? InitializeShard(std::move(options), request.seed())
                                       : RestoreShard(std::move(options), request.restore_prefix());
  RETURN_IF_ERROR(store.status());
  LogInfo("shard ", request.shard(), " of ", request.placement().num_shards(),
          " ready: ", (*store)->value_bytes(), " bytes of values, ", (*store)->slot_bytes(),
          " of slots, ",
          request.restore_prefix().empty() ? "initial values"
                                           : absl::StrCat("from ", request.restore_prefix()),
          ", ",
          absl::FormatDuration(absl::Trunc(clock_->Monotonic() - start, absl::Milliseconds(1))));
  return store;
}

absl::StatusOr<std::shared_ptr<const ParameterHandler::Shard>> ParameterHandler::ReadyShard(
    uint64_t placement_fingerprint) const {
  MutexLock lock(&mu_);
  if (shard_ == nullptr) return absl::UnavailableError("the shard is not initialised yet");
  if (placement_fingerprint != shard_->placement_fingerprint) {
    return absl::AbortedError("the request was made for another placement of the variables");
  }
  return shard_;
}

absl::Status ParameterHandler::Pull(const v1::PullRequest& request, v1::PullResponse* response) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Shard> shard,
                   ReadyShard(request.placement_fingerprint()));
  ASSIGN_OR_RETURN(const std::vector<AddressedBlock> blocks,
                   Resolve(*shard->store, request.ranges()));
  const size_t known = static_cast<size_t>(request.known_versions_size());
  if (known != 0 && known != blocks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pull: expected ", blocks.size(), " known versions, found ", known));
  }
  // Read before the blocks: a push that lands meanwhile makes the values newer than said, never
  // older.
  response->set_shard_step(shard->store->shard_step());
  response->set_store_id(shard->store_id);
  std::string* payload = response->mutable_payload();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockContentRef content = blocks[i].block->Read();
    if (known != 0 && content->version <= request.known_versions(static_cast<int>(i))) continue;
    v1::BlockHeader* header = response->add_blocks();
    header->set_partition(blocks[i].partition);
    header->set_block(blocks[i].index);
    header->set_version(content->version);
    payload->append(reinterpret_cast<const char*>(content->values.data()),
                    static_cast<size_t>(content->values.size()) * sizeof(float));
  }
  pulled_bytes_ += static_cast<int64_t>(payload->size());
  return absl::OkStatus();
}

absl::Status ParameterHandler::Push(const v1::PushRequest& request, v1::PushResponse* response) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Shard> shard,
                   ReadyShard(request.placement_fingerprint()));
  BlockStore* store = shard->store.get();
  ASSIGN_OR_RETURN(const std::vector<AddressedBlock> blocks, Resolve(*store, request.ranges()));
  RETURN_IF_ERROR(CheckPayload(*store, blocks, request.payload().size()));
  const PushIdentity push = {request.header().incarnation(), request.sequence(),
                             store->LearningRateAt(request.step())};
  const auto* gradient = reinterpret_cast<const float*>(request.payload().data());
  uint32_t duplicates = 0;
  {
    const BlockStore::PushScope scope(store);
    bool applied = false;  // the last block, which stands for the message
    for (const AddressedBlock& block : blocks) {
      const size_t elements = static_cast<size_t>(block.elements);
      applied = block.block->Apply(store->optimizer(), push, {gradient, elements});
      if (!applied) ++duplicates;
      gradient += elements;
    }
    response->set_staleness(std::max<int64_t>(
        0, PushesBefore(request, !blocks.empty(), applied, store) - request.pulled_shard_step()));
    response->set_shard_step(store->shard_step());
  }
  response->set_duplicate_blocks(duplicates);
  duplicate_blocks_ += duplicates;
  pushed_bytes_ += static_cast<int64_t>(request.payload().size());
  return absl::OkStatus();
}

absl::Status ParameterHandler::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                             v1::WriteSnapshotResponse* response) {
  std::shared_ptr<const Shard> shard;
  {
    MutexLock lock(&mu_);
    if (shard_ == nullptr) return absl::UnavailableError("the shard is not initialised yet");
    shard = shard_;
  }
  const absl::Duration start = clock_->Monotonic();
  const ShardCut cut = shard->store->Cut();
  response->set_cut_microseconds(absl::ToInt64Microseconds(clock_->Monotonic() - start));
  ASSIGN_OR_RETURN(WrittenShard written, WriteShard(*shard->store, cut, request.data_path(),
                                                    static_cast<int>(request.data_shard())));
  for (BundleIndexEntry& entry : written.entries) {
    v1::WriteSnapshotResponse::Entry* out = response->add_entries();
    out->set_key(std::move(entry.key));
    *out->mutable_entry() = std::move(entry.entry);
  }
  response->set_shard_step(cut.shard_step);
  response->set_bytes_written(written.bytes_written);
  return absl::OkStatus();
}

absl::Status ParameterHandler::GetStatus(const v1::GetShardStatusRequest& request,
                                         v1::ShardStatus* response) {
  if (!request.chief_address().empty()) {
    MutexLock lock(&mu_);
    chief_address_ = request.chief_address();
  }
  FillStatus(response);
  return absl::OkStatus();
}

void ParameterHandler::FillStatus(v1::ShardStatus* status) const {
  status->set_incarnation(options_.incarnation);
  status->set_config_hash(options_.config_hash);
  status->set_pushed_bytes(pushed_bytes_);
  status->set_pulled_bytes(pulled_bytes_);
  status->set_duplicate_blocks(duplicate_blocks_);
  MutexLock lock(&mu_);
  status->set_state(state_);
  if (shard_ == nullptr) return;
  status->set_store_id(shard_->store_id);
  status->set_shard_step(shard_->store->shard_step());
  status->set_value_bytes(shard_->store->value_bytes());
  status->set_slot_bytes(shard_->store->slot_bytes());
}

absl::Status ParameterHandler::FindChief(const v1::FindChiefRequest& request,
                                         v1::FindChiefResponse* response) {
  MutexLock lock(&mu_);
  response->set_address(chief_address_);
  return absl::OkStatus();
}

absl::Status ParameterHandler::Finish(const v1::FinishShardRequest& request,
                                      v1::FinishShardResponse* response) {
  LogInfo("the job is over");
  finished_ = true;
  end_->Raise();
  return absl::OkStatus();
}

}  // namespace keelson
