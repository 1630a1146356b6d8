#include "ps_server/block.h"

#include <array>

namespace keelson {
namespace {

// Optimizers have at most two slots.
constexpr size_t kMaxSlots = 2;

// Elements [first, first + count) of a block.
void UpdateElements(const Optimizer& optimizer, float learning_rate, const BlockContent& from,
                    BlockContent* to, int64_t first, int64_t count,
                    const EncodedGradient& gradient) {
  std::array<const float*, kMaxSlots> slots_in{};
  std::array<float*, kMaxSlots> slots_out{};
  const size_t num_slots = from.slots.size();
  for (size_t i = 0; i < num_slots; ++i) {
    slots_in[i] = from.slots[i].data() + first;
    slots_out[i] = to->slots[i].data() + first;
  }
  UpdateArgs args;
  args.values_in = {from.values.data() + first, static_cast<size_t>(count)};
  args.slots_in = {slots_in.data(), num_slots};
  args.gradient = gradient;
  args.values_out = {to->values.data() + first, static_cast<size_t>(count)};
  args.slots_out = {slots_out.data(), num_slots};
  args.learning_rate = learning_rate;
  args.update = from.updates;
  optimizer.Update(args);
}

void UpdateContent(const Optimizer& optimizer, float learning_rate, const WireGradient& gradient,
                   const BlockContent& from, BlockContent* to) {
  ReadGradient(gradient, from.values.size(),
               [&](int64_t first, int64_t count, const EncodedGradient& piece) {
                 UpdateElements(optimizer, learning_rate, from, to, first, count, piece);
               });
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
  return state_.content;
}

BlockState Block::ReadState() const {
  MutexLock lock(&mu_);
  return state_;
}

bool Block::Apply(const Optimizer& optimizer, const PushIdentity& push,
                  const WireGradient& gradient, BlockContentRef* after) {
  MutexLock lock(&mu_);
  const bool applies = MarkApplied(push);
  if (applies) {
    Update(optimizer, push.learning_rate, gradient);
  } else {
    SkipGradient(gradient, state_.content->values.size());
  }
  if (after != nullptr) *after = state_.content;
  return applies;
}

void Block::Update(const Optimizer& optimizer, float learning_rate, const WireGradient& gradient) {
  if (BlockContent* sole = state_.content.Mutable()) {
    UpdateContent(optimizer, learning_rate, gradient, *sole, sole);
    return;
  }
  BlockContentRef next(BlockContent::NewLike(*state_.content));
  UpdateContent(optimizer, learning_rate, gradient, *state_.content, next.Mutable());
  state_.content = std::move(next);
}

bool Block::MarkApplied(const PushIdentity& push) {
  for (AppliedSequence& known : state_.applied) {
    if (known.incarnation != push.incarnation) continue;
    if (push.sequence <= known.sequence) return false;
    known.sequence = push.sequence;
    return true;
  }
  state_.applied.push_back({push.incarnation, push.sequence});
  return true;
}

}  // namespace keelson
