#include "ps_server/block.h"

#include <array>

namespace keelson {
namespace {

// Optimizers have at most two slots.
constexpr size_t kMaxSlots = 2;

void Update(const Optimizer& optimizer, const PushIdentity& push, absl::Span<const float> gradient,
            const BlockContent& from, BlockContent* to) {
  std::array<const float*, kMaxSlots> slots_in{};
  std::array<float*, kMaxSlots> slots_out{};
  const size_t num_slots = from.slots.size();
  for (size_t i = 0; i < num_slots; ++i) {
    slots_in[i] = from.slots[i].data();
    slots_out[i] = to->slots[i].data();
  }
  UpdateArgs args;
  args.values_in = from.values.span();
  args.slots_in = {slots_in.data(), num_slots};
  args.gradient = gradient;
  args.values_out = to->values.span();
  args.slots_out = {slots_out.data(), num_slots};
  args.learning_rate = push.learning_rate;
  args.update = from.updates;
  optimizer.Update(args);
  to->version = from.version + 1;
  to->updates = from.updates + 1;
}

}  // namespace

BlockContentRef Block::Read() const {
  MutexLock lock(&mu_);
  return state_.content;
}

BlockState Block::ReadState() const {
  MutexLock lock(&mu_);
  return state_;
}

bool Block::Apply(const Optimizer& optimizer, const PushIdentity& push,
                  absl::Span<const float> gradient) {
  MutexLock lock(&mu_);
  if (!MarkApplied(push)) return false;
  if (BlockContent* sole = state_.content.Mutable()) {
    Update(optimizer, push, gradient, *sole, sole);
    return true;
  }
  const BlockContent& old = *state_.content;
  BlockContentRef next(new BlockContent(old.values.size(), old.slots.size()));
  Update(optimizer, push, gradient, old, next.Mutable());
  state_.content = std::move(next);
  return true;
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
