// A block: up to 1 MiB of a variable with its optimizer slots. The unit of locking, versioning,
// transfer and snapshot.
//
// The content of a block is immutable while anything beside the block holds it. An update under the
// block's lock changes it in place when the block is its sole holder; otherwise it writes the new
// version out of place. So a pull or a snapshot takes a reference and reads without a lock, and no
// update ever waits for them.
#ifndef KEELSON_PS_SERVER_UNITS_BLOCK_H_
#define KEELSON_PS_SERVER_UNITS_BLOCK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/optim/optimizer.h"
#include "core/tensor/aligned_buffer.h"
#include "core/wire/byte_rope.h"
#include "ps_server/units/applied_sequences.h"
#include "ps_server/units/gradient_reader.h"
#include "ps_server/units/round_sum.h"

namespace keelson {

// One version of a block's content, with a reference count: the last holder deletes it.
class BlockContent {
 public:
  // Content of zeros.
  BlockContent(int64_t elements, size_t num_slots) : values(elements) {
    for (size_t i = 0; i < num_slots; ++i) slots.emplace_back(elements);
  }

  // Content of the size of `other` with elements not set: its next version before the update.
  static BlockContent* NewLike(const BlockContent& other);

  AlignedBuffer values;
  std::vector<AlignedBuffer> slots;
  uint64_t version = 1;  // rises with every update
  int64_t updates = 0;   // since the initial values

 private:
  friend class BlockContentRef;
  BlockContent() = default;

  std::atomic<int> holders_{0};
};

// A counted reference to a BlockContent.
class BlockContentRef {
 public:
  BlockContentRef() = default;
  explicit BlockContentRef(BlockContent* content) : content_(content) { Acquire(); }
  BlockContentRef(const BlockContentRef& other) : content_(other.content_) { Acquire(); }
  BlockContentRef(BlockContentRef&& other) noexcept
      : content_(std::exchange(other.content_, nullptr)) {}
  BlockContentRef& operator=(BlockContentRef other) {
    std::swap(content_, other.content_);
    return *this;
  }
  ~BlockContentRef() { Release(content_); }

  const BlockContent& operator*() const { return *content_; }
  const BlockContent* operator->() const { return content_; }

  // Turns the reference into a Pin, for bytes of the content that a transport is sending.
  Pin IntoPin() && {
    return Pin([](void* content) { Release(static_cast<BlockContent*>(content)); },
               std::exchange(content_, nullptr));
  }

  // The content for writing, or null when others hold it too. The caller prevents that anyone
  // copies this reference meanwhile (the block's lock does). Acquire pairs with the release in
  // the destructor: what former holders read is read before what the caller writes.
  BlockContent* Mutable() {
    return content_->holders_.load(std::memory_order_acquire) == 1 ? content_ : nullptr;
  }

 private:
  void Acquire() {
    if (content_ != nullptr) content_->holders_.fetch_add(1, std::memory_order_relaxed);
  }

  static void Release(BlockContent* content) {
    if (content != nullptr && content->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete content;
    }
  }

  BlockContent* content_ = nullptr;
};

// The identity of a push, and the rate at which to apply it.
struct PushIdentity {
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  float learning_rate = 0;
  // PushRequest; 0 is 1.
  uint32_t steps_under_way = 0;
  uint32_t unseen_pushes = 0;
  // In a round this is the place of its gradient (RoundSum::Add).
  uint32_t order = 0;
};

enum class StageResult {
  kAdded,
  kDuplicate,  // this push or a later one of the same incarnation was taken before, here or where
               // the sum comes from
  kOutdated,   // the block has moved on to a newer attempt or round
};

// Thread-safe. Where the optimizer reads workers' values (delay compensation), the block remembers
// the contents that each incarnation was given and may still compute a gradient from: that of the
// last pull or answer, and of one before where it has two steps under way.
class Block {
 public:
  // Unit `unit` of the shard with these `sequences`, which outlive this.
  Block(BlockContentRef content, size_t unit, AppliedSequences* sequences)
      : unit_(unit), sequences_(sequences), content_(std::move(content)) {}

  BlockContentRef Read() const;
  // Reads the content for `incarnation` and remembers that it was given.
  BlockContentRef Give(uint64_t incarnation);

  // Applies the gradient of all elements, which CheckGradient has approved, directly from its
  // pieces, and moves its cursor behind it. Returns false, and changes nothing, when this push or a
  // later one of the same incarnation has been applied already. `after`, if not null, receives the
  // content after this call, for the pusher.
  bool Apply(const Optimizer& optimizer, const PushIdentity& push, const WireGradient& gradient,
             BlockContentRef* after = nullptr);

  // Takes a push that has no gradient of this block, whose content stays as it is. Otherwise Apply.
  bool ApplyNothing(const Optimizer& optimizer, const PushIdentity& push,
                    BlockContentRef* after = nullptr);

  // Adds weight * gradient to the sum of `round`, once per push, and moves the gradient's cursor
  // behind it; the sum of an older attempt or round is dropped. The content does not change.
  StageResult Stage(const PushIdentity& push, const RoundId& round, float weight,
                    const WireGradient& gradient);
  // The number of pushes in the sum of `round`.
  uint32_t Contributions(const RoundId& round) const;
  // Calls `read` with the sum of `round`, or with null, under the block's lock.
  void ReadSum(const RoundId& round, absl::FunctionRef<void(const RoundSum*)> read) const;
  // Puts a sum in place of any other.
  void TakeSum(std::unique_ptr<RoundSum> sum);
  // Applies the mean of the sum, and frees it. There must be contributions.
  void CommitRound(const Optimizer& optimizer, float learning_rate);

  // Forgets what was given to all incarnations but these (sorted).
  void Keep(absl::Span<const uint64_t> incarnations);

 private:
  struct Given {
    uint64_t incarnation;
    uint64_t sequence;  // of the push that it answered, or of the last answer before the pull
    BlockContentRef content;
  };

  // False: the push, or a later one of the same incarnation, has been applied already. The lock
  // makes one step of this and of the change of the content.
  bool TakeSequence(const PushIdentity& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Remembers the content as the answer to this push, and forgets what no later one needs.
  void Remember(const PushIdentity& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What the incarnation had after this push: the newest of what it was given until then, or the
  // oldest that is known. given_.end(): unknown.
  std::vector<Given>::const_iterator GivenUntil(uint64_t incarnation, uint64_t sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the pusher the content as the answer to this push.
  void Answer(const Optimizer& optimizer, const PushIdentity& push, BlockContentRef* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Replaces the content by the result of `update(from, to)`, in place if the block is its only
  // holder.
  template <typename Update>
  void Renew(Update update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t unit_;
  AppliedSequences* const sequences_;

  mutable Mutex mu_;
  BlockContentRef content_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RoundSum> sum_ ABSL_GUARDED_BY(mu_);  // null if no round is open
  std::vector<Given> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_BLOCK_H_
