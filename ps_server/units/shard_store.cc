// Blocks have their own locks; cut_mu_ makes a message with several blocks atomic. Pushes hold it
// shared (PushScope), so they run side by side; Cut, SetMembers and CommitRound hold it
// exclusively, so each of them sees a push in all of its blocks or in none. The exclusive part of a
// snapshot is short, because a cut copies references, not values, and of each worker a few runs of
// sequences.
#include "ps_server/units/shard_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

BlockState NewBlock(const Optimizer& optimizer, int64_t elements) {
  auto* content = new BlockContent(elements, optimizer.slots().size());
  for (size_t i = 0; i < content->slots.size(); ++i) {
    const absl::Span<float> slot = content->slots[i].span();
    std::fill(slot.begin(), slot.end(), optimizer.slots()[i].initial_value);
  }
  return {BlockContentRef(content), {}};
}

}  // namespace

int64_t LeastBytesOf(const Placement& placement, size_t shard,
                     const VariableOptimizers& optimizers) {
  constexpr auto kOfBlock = static_cast<int64_t>(sizeof(Block) + sizeof(BlockContent));
  int64_t bytes = 0;
  for (const size_t p : placement.PartitionsOf(shard)) {
    const size_t arrays = 1 + optimizers.Of(placement.partition(p).variable).slots().size();
    bytes += placement.PartitionElements(p) * static_cast<int64_t>(arrays * sizeof(float)) +
             placement.NumBlocks(p) * kOfBlock;
  }
  return bytes;
}

ShardStore::ShardStore(Options options)
    : options_(std::move(options)),
      partitions_(options_.placement.PartitionsOf(options_.shard)),
      local_(options_.placement.partitions().size()) {}

absl::StatusOr<std::unique_ptr<ShardStore>> ShardStore::Create(Options options,
                                                               const ShardProgress& progress,
                                                               FillBlock fill) {
  std::unique_ptr<ShardStore> store(new ShardStore(std::move(options)));
  store->shard_step_ = progress.shard_step;
  store->SkipRounds(progress.committed);
  const Placement& placement = store->placement();
  for (const size_t p : store->partitions_) {
    store->local_[p] = store->blocks_.size();
    auto& blocks = store->blocks_.emplace_back();
    for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
      const BlockPosition position = {
          placement.partition(p).variable,
          placement.PartitionFirstElement(p) + b * placement.block_elements(),
          placement.BlockElements(p, b)};
      BlockState state = NewBlock(store->OptimizerOf(p), position.num_elements);
      RETURN_IF_ERROR(fill(position, &state));
      const size_t unit = store->num_blocks_++;
      for (const BlockState::Applied& push : state.applied) {
        store->applied_.Restore(unit, push.incarnation, push.sequence);
      }
      blocks.push_back(std::make_unique<Block>(std::move(state.content), unit, &store->applied_));
    }
  }
  RETURN_IF_ERROR(store->CreateTables());
  return store;
}

absl::Status ShardStore::CreateTables() {
  const Placement& placement = options_.placement;
  if (placement.tables().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      tables_, TableStore::Create({placement.tables(), placement.RowPartitionsOf(options_.shard),
                                   options_.seed, num_blocks_, options_.max_table_bytes},
                                  &options_.table_optimizers, &options_.learning_rate, &applied_));
  return absl::OkStatus();
}

absl::StatusOr<Block*> ShardStore::Find(size_t partition, size_t block) const {
  if (partition >= local_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition ", partition, ": expected 0..", local_.size() - 1));
  }
  if (!local_[partition]) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", options_.placement.VariableOf(partition).name, ", partition ",
                     partition, ": expected a partition of shard ", options_.shard,
                     ", found one of shard ", options_.placement.partition(partition).shard));
  }
  const auto& blocks = blocks_[*local_[partition]];
  if (block >= blocks.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", options_.placement.VariableOf(partition).name, ", partition ", partition,
        ": expected blocks 0..", blocks.size() - 1, ", found block ", block));
  }
  return blocks[block].get();
}

absl::Status ShardStore::CheckOpen() const {
  if (!ended_) return absl::OkStatus();
  return absl::UnavailableError("this server leaves; its successor will take the call");
}

bool ShardStore::EndsWithLocked(uint64_t changes) const {
  if (changes_ != changes) return false;
  MutexLock lock(&round_mu_);
  return ended_ || open_round_.round <= committed_.round;
}

bool ShardStore::EndsWith(uint64_t changes) const {
  ReaderMutexLock lock(&cut_mu_);
  return EndsWithLocked(changes);
}

bool ShardStore::EndIfSaved(uint64_t changes) {
  WriterMutexLock lock(&cut_mu_);
  const bool ends = EndsWithLocked(changes);
  ended_ = ended_ || ends;
  return ends;
}

ShardCut ShardStore::Cut(const CutChanges& changes) const {
  WriterMutexLock lock(&cut_mu_);
  ended_ = ended_ || ends_;
  ShardCut cut;
  cut.shard_step = shard_step();
  cut.changes = changes_;
  cut.committed = committed();
  for (const auto& blocks : blocks_) {
    auto& contents = cut.partitions.emplace_back();
    contents.reserve(blocks.size());
    for (const auto& block : blocks) contents.push_back(block->Read());
  }
  if (tables_ != nullptr) cut.tables = tables_->Cut(changes);
  cut.applied = applied_.Table();
  return cut;
}

void ShardStore::SetMembers(std::vector<uint64_t> incarnations) {
  std::sort(incarnations.begin(), incarnations.end());
  const auto stays = [&incarnations](uint64_t member) {
    return std::binary_search(incarnations.begin(), incarnations.end(), member);
  };
  WriterMutexLock lock(&cut_mu_);
  // A store that was restored may know of anyone.
  const bool nobody_left =
      !members_.empty() && std::all_of(members_.begin(), members_.end(), stays);
  members_ = std::move(incarnations);
  if (nobody_left) return;
  applied_.Keep(members_);
  for (const auto& blocks : blocks_) {
    for (const auto& block : blocks) block->Keep(members_);
  }
}

absl::Status ShardStore::EnterRound(const RoundId& round) {
  MutexLock lock(&round_mu_);
  const bool follows = round.attempt == open_round_.attempt && round.round > open_round_.round;
  if (follows && open_round_.round > committed_.round) {
    return absl::UnavailableError(absl::StrCat(round.ToString(), ": round ", open_round_.round,
                                               " has not been committed here yet"));
  }
  return EnterRoundLocked(round);
}

absl::Status ShardStore::EnterRoundLocked(const RoundId& round) {
  if (round.round <= committed_.round) {
    return absl::FailedPreconditionError(absl::StrCat(
        round.ToString(), ": round ", committed_.round, " has been committed already"));
  }
  if (round < open_round_) {
    return absl::FailedPreconditionError(
        absl::StrCat(round.ToString(), ": ", open_round_.ToString(), " has begun already"));
  }
  open_round_ = round;
  return absl::OkStatus();
}

RoundId ShardStore::open_round() const {
  MutexLock lock(&round_mu_);
  return open_round_;
}

CommittedRound ShardStore::committed() const {
  MutexLock lock(&round_mu_);
  return committed_;
}

void ShardStore::SkipRounds(const CommittedRound& newest) {
  MutexLock lock(&round_mu_);
  if (newest.round > committed_.round) committed_ = newest;
}

absl::Status ShardStore::MayCommit(const RoundId& round, uint32_t contributions) const {
  ReaderMutexLock lock(&cut_mu_);
  return MayCommitLocked(round, contributions);
}

absl::Status ShardStore::MayCommitLocked(const RoundId& round, uint32_t contributions) const {
  if (contributions == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(round.ToString(), ": contributions: expected > 0, found 0"));
  }
  if (round.round <= committed().round) return absl::OkStatus();
  RETURN_IF_ERROR(CheckOpen());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (size_t b = 0; b < blocks_[i].size(); ++b) {
      const uint32_t found = blocks_[i][b]->Contributions(round);
      if (found == contributions) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(round.ToString(), ": ", NameOf(partitions_[i], b), ": expected ",
                       contributions, " contributions, found ", found));
    }
  }
  return tables_ == nullptr ? absl::OkStatus() : tables_->CheckContributions(round, contributions);
}

absl::Status ShardStore::CommitRound(const RoundId& round, uint32_t contributions,
                                     ThreadPool* pool) {
  WriterMutexLock lock(&cut_mu_);
  RETURN_IF_ERROR(MayCommitLocked(round, contributions));
  if (round.round <= committed().round) return absl::OkStatus();
  struct Update {
    Block* block;
    const Optimizer* optimizer;
  };
  std::vector<Update> updates;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (const std::unique_ptr<Block>& block : blocks_[i]) {
      updates.push_back({block.get(), &OptimizerOf(partitions_[i])});
    }
  }
  CountChange();
  const float learning_rate = LearningRateAt(round.round);
  pool->RunAll(updates.size(), [&](size_t i) {
    const Update& update = updates[i];
    update.block->CommitRound(*update.optimizer, learning_rate);
  });
  if (tables_ != nullptr) tables_->CommitRound(round, learning_rate, pool);
  SkipRounds({round.round, contributions});
  CountPush();
  return absl::OkStatus();
}

std::vector<int64_t> ShardStore::BlockSizes() const {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (size_t b = 0; b < blocks_[i].size(); ++b) {
      sizes.push_back(BlockElements(partitions_[i], static_cast<int64_t>(b)));
    }
  }
  return sizes;
}

absl::Status ShardStore::ReadSums(const RoundId& round, uint32_t contributions, size_t first,
                                  size_t count,
                                  absl::FunctionRef<void(const RoundSum& sum)> read) const {
  RETURN_IF_ERROR(MayCommit(round, contributions));
  size_t number = 0;
  for (const auto& blocks : blocks_) {
    for (const std::unique_ptr<Block>& block : blocks) {
      const size_t at = number++;
      if (at < first || at >= first + count) continue;
      bool found = false;
      block->ReadSum(round, [&](const RoundSum* sum) {
        found = sum != nullptr;
        if (found) read(*sum);
      });
      if (!found) {
        return absl::FailedPreconditionError(
            absl::StrCat(round.ToString(), ": it is over, or was begun again"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ShardStore::TakeSums(const RoundId& round,
                                  std::vector<std::unique_ptr<RoundSum>> sums) {
  const PushScope scope(this);
  {
    MutexLock lock(&round_mu_);
    RETURN_IF_ERROR(EnterRoundLocked(round));
  }
  size_t number = 0;
  for (const auto& blocks : blocks_) {
    for (const std::unique_ptr<Block>& block : blocks) block->TakeSum(std::move(sums[number++]));
  }
  return absl::OkStatus();
}

int64_t ShardStore::slot_bytes() const {
  int64_t bytes = 0;
  for (const size_t p : partitions_) {
    bytes += placement().PartitionElements(p) * static_cast<int64_t>(sizeof(float)) *
             static_cast<int64_t>(OptimizerOf(p).slots().size());
  }
  return bytes;
}

std::string ShardStore::NameOf(size_t p, size_t block) const {
  return absl::StrCat("variable ", options_.placement.VariableOf(p).name, ", block ", block);
}

}  // namespace keelson
