// A push that is repeated because its answer was lost must not count twice. So a block takes a
// push's sequence and changes its content under one lock, and snapshots keep both: a block that was
// restored still skips what its values contain. The sequence of a push that Stage finds outdated is
// not taken, because its gradient is in no sum.
#include "ps_server/units/block.h"

#include <algorithm>
#include <array>

namespace keelson {
namespace {

// The arguments of an update that are the same for all pieces of a gradient.
struct BlockUpdate {
  const Optimizer& optimizer;
  float learning_rate;
  const BlockContent& from;
  const BlockContent* worker_content;  // null if unknown
  BlockContent* to;
};

absl::Span<const float> Part(const AlignedBuffer& buffer, int64_t first, int64_t count) {
  return absl::MakeConstSpan(buffer.data() + first, count);
}

// Updates the elements [first, first + count) of a block.
void UpdateElements(const BlockUpdate& block, int64_t first, int64_t count,
                    const EncodedGradient& gradient) {
  std::array<const float*, Optimizer::kMaxSlots> slots_in{};
  std::array<float*, Optimizer::kMaxSlots> slots_out{};
  const size_t num_slots = block.from.slots.size();
  for (size_t i = 0; i < num_slots; ++i) {
    slots_in[i] = block.from.slots[i].data() + first;
    slots_out[i] = block.to->slots[i].data() + first;
  }
  UpdateArgs args;
  args.values_in = Part(block.from.values, first, count);
  args.slots_in = {slots_in.data(), num_slots};
  args.gradient = gradient;
  args.values_out = absl::MakeSpan(block.to->values.data() + first, count);
  args.slots_out = {slots_out.data(), num_slots};
  args.learning_rate = block.learning_rate;
  args.update = block.from.updates;
  if (block.worker_content != nullptr) {
    args.worker_values = Part(block.worker_content->values, first, count);
  }
  block.optimizer.Update(args);
}

void CountUpdate(const BlockContent& from, BlockContent* to) {
  to->version = from.version + 1;
  to->updates = from.updates + 1;
}

}  // namespace

BlockContent* BlockContent::NewLike(const BlockContent& other) {
  auto* content = new BlockContent();
  content->values = AlignedBuffer::Uninitialized(other.values.size());
  content->slots.reserve(other.slots.size());
  for (const AlignedBuffer& slot : other.slots) {
    content->slots.push_back(AlignedBuffer::Uninitialized(slot.size()));
  }
  return content;
}

BlockContentRef Block::Read() const {
  MutexLock lock(&mu_);
  return content_;
}

BlockContentRef Block::Give(uint64_t incarnation) {
  MutexLock lock(&mu_);
  uint64_t answered = 0;
  std::erase_if(given_, [&](const Given& given) {
    if (given.incarnation != incarnation) return false;
    answered = std::max(answered, given.sequence);
    return true;
  });
  given_.push_back({incarnation, answered, content_});
  return content_;
}

bool Block::Apply(const Optimizer& optimizer, const PushIdentity& push,
                  const WireGradient& gradient, BlockContentRef* after) {
  MutexLock lock(&mu_);
  const bool applies = TakeSequence(push);
  if (applies) {
    const auto base = GivenUntil(push.incarnation, push.sequence - 1 - push.unseen_pushes);
    const BlockContent* given =
        optimizer.reads_worker_values() && base != given_.end() ? &*base->content : nullptr;
    Renew([&](const BlockContent& from, BlockContent* to) {
      const BlockUpdate update = {optimizer, push.learning_rate, from, given, to};
      ReadGradient(gradient, from.values.size(),
                   [&update](int64_t first, int64_t count, const EncodedGradient& piece) {
                     UpdateElements(update, first, count, piece);
                   });
    });
  } else {
    SkipGradient(gradient, content_->values.size());
  }
  Answer(optimizer, push, after);
  return applies;
}

bool Block::ApplyNothing(const Optimizer& optimizer, const PushIdentity& push,
                         BlockContentRef* after) {
  MutexLock lock(&mu_);
  const bool applies = TakeSequence(push);
  Answer(optimizer, push, after);
  return applies;
}

StageResult Block::Stage(const PushIdentity& push, const RoundId& round, float weight,
                         const WireGradient& gradient) {
  MutexLock lock(&mu_);
  const int64_t elements = content_->values.size();
  if (sum_ != nullptr && round < sum_->id()) {
    SkipGradient(gradient, elements);
    return StageResult::kOutdated;
  }
  // What a whole sum has came to another process, whose sequences after the copy are unknown here.
  const bool has_it = sum_ != nullptr && sum_->id() == round && sum_->whole();
  if (!TakeSequence(push) || has_it) {
    SkipGradient(gradient, elements);
    return StageResult::kDuplicate;
  }
  if (sum_ == nullptr || sum_->id() != round) {
    sum_ = nullptr;  // before there are two
    sum_ = std::make_unique<RoundSum>(round, elements);
  }
  sum_->Add(gradient, weight, push.order);
  return StageResult::kAdded;
}

uint32_t Block::Contributions(const RoundId& round) const {
  MutexLock lock(&mu_);
  return sum_ != nullptr && sum_->id() == round ? sum_->contributions() : 0;
}

void Block::ReadSum(const RoundId& round, absl::FunctionRef<void(const RoundSum*)> read) const {
  MutexLock lock(&mu_);
  const bool found = sum_ != nullptr && sum_->id() == round;
  if (found) sum_->AddKept();
  read(found ? sum_.get() : nullptr);
}

void Block::TakeSum(std::unique_ptr<RoundSum> sum) {
  MutexLock lock(&mu_);
  sum_ = std::move(sum);
}

void Block::CommitRound(const Optimizer& optimizer, float learning_rate) {
  MutexLock lock(&mu_);
  const EncodedGradient mean = sum_->TakeMean();
  Renew([&](const BlockContent& from, BlockContent* to) {
    UpdateElements({optimizer, learning_rate, from, nullptr, to}, 0, from.values.size(), mean);
  });
  sum_ = nullptr;
}

void Block::Keep(absl::Span<const uint64_t> incarnations) {
  const auto is_other = [incarnations](const auto& entry) {
    return !std::binary_search(incarnations.begin(), incarnations.end(), entry.incarnation);
  };
  MutexLock lock(&mu_);
  std::erase_if(given_, is_other);
}

template <typename Update>
void Block::Renew(Update update) {
  if (BlockContent* sole = content_.Mutable()) {
    update(*sole, sole);
    CountUpdate(*sole, sole);
    return;
  }
  BlockContentRef next(BlockContent::NewLike(*content_));
  update(*content_, next.Mutable());
  CountUpdate(*content_, next.Mutable());
  content_ = std::move(next);
}

void Block::Answer(const Optimizer& optimizer, const PushIdentity& push, BlockContentRef* after) {
  if (after == nullptr) return;
  if (optimizer.reads_worker_values()) Remember(push);
  *after = content_;
}

void Block::Remember(const PushIdentity& push) {
  const uint64_t older = std::max<uint64_t>(push.steps_under_way, 1) - 1;
  const auto base = GivenUntil(push.incarnation, push.sequence - older);
  const uint64_t oldest = older > 0 && base != given_.end() ? base->sequence : push.sequence;
  std::erase_if(given_, [&](const Given& given) {
    const bool needed = given.sequence >= oldest && given.sequence < push.sequence;
    return given.incarnation == push.incarnation && !needed;
  });
  given_.push_back({push.incarnation, push.sequence, content_});
}

std::vector<Block::Given>::const_iterator Block::GivenUntil(uint64_t incarnation,
                                                            uint64_t sequence) const {
  auto found = given_.end();
  for (auto given = given_.begin(); given != given_.end(); ++given) {
    if (given->incarnation != incarnation) continue;
    // One incarnation's are in the order of their sequences.
    if (found == given_.end() || given->sequence <= sequence) found = given;
  }
  return found;
}

bool Block::TakeSequence(const PushIdentity& push) {
  return sequences_->Take(unit_, push.incarnation, push.sequence);
}

}  // namespace keelson
