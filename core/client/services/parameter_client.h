// The model's variables as a worker sees them: whole arrays, however they are divided among
// servers.
#ifndef KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/client/services/bulk_server.h"
#include "core/client/services/table_rows.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// Memory of the caller that a client uses instead of its own, in one of two forms.
struct ParameterMemory {
  // Arrays of elements, one per variable, only at depth 1: `values` is written in Pull and from
  // Begin to End, `gradients` is read from Offer to End. A model whose device computes in host
  // memory lends its own, and nothing is copied.
  std::vector<absl::Span<float>> values;
  std::vector<absl::Span<float>> gradients;
  // Or bytes in wire format, laid out by WireOf; as many sets as the depth. The client neither
  // encodes nor decodes: it sends from wire->gradients[set], which it reads from Offer to the End
  // that acknowledges the step, and writes answers to wire->values[set]. values() and gradients()
  // are empty.
  std::optional<WireMemory> wire = std::nullopt;
};

// A step whose gradients the servers add up, in synchronous mode, instead of applying them.
struct Aggregation {
  int64_t round = 0;
  uint32_t attempt = 0;  // > 0
  // The weight of this gradient in the round's mean; > 0.
  float weight = 0;
  // Its place among the round's gradients, from 1 on, if they are added in that order; 0: as they
  // come.
  uint32_t order = 0;
};

// The result of a step's exchange with the servers.
struct PushResult {
  int64_t step = 0;
  // Largest over the shards: pushes of others applied between the answer whose values the gradient
  // was computed from and this push; with depth 2 also the caller's own.
  int64_t staleness = 0;
  // With an Aggregation: a server said that the round is over or has gone on to a newer attempt, so
  // the gradient does not count.
  bool refused = false;
  // Calls that had to be repeated.
  int64_t retries = 0;
  // The bytes of requests and of answers, with headers; a repeated request counts once.
  int64_t bytes_pushed = 0;
  int64_t bytes_pulled = 0;
  // From the first message that could have been sent to the last answer.
  absl::Duration duration;
  // The part of `duration` in which a message was ready but held back, because the servers granted
  // no more credits.
  absl::Duration waited_for_credit;
};

// One step at a time:
//   Pull                       the first values
//   Begin(step)
//     Offer(variable)...       as gradients become complete, in any order; what is complete is sent
//     NextValues()...          optional
//   End()                      the rest is sent
// A step's values come with the answers to its push. At depth 1, End returns when they are in
// values(). At depth 2 it returns when those of the step before are, and of this step whatever has
// come by then; values() stays as it is until the next End.
//
// With an Aggregation the servers keep the gradients until the round is committed, so no values
// come back: whatever the depth, End returns when this step is acknowledged, values() stay as they
// are, and the caller pulls before it computes the next one. At depth 2 it drains before such a
// Begin.
//
// Used by one thread, except SetServers. Every call retries while a server is unreachable (see
// RetryOptions), and returns CANCELLED when the owner's stop signal is raised meanwhile. Other
// errors, and UNAVAILABLE after the last retry, are final.
class ParameterClient {
 public:
  virtual ~ParameterClient() = default;

  // One array per variable, in the model's order; as of the last Pull or End, zeros before. At
  // depth 1 a variable's array must not be read between its Offer and End.
  virtual absl::Span<const absl::Span<float>> values() const = 0;

  // The arrays for the gradients of the current or next step. They belong to the caller from the
  // return of the last End (or from the start) until it offers the variable or calls End.
  virtual absl::Span<const absl::Span<float>> gradients() const = 0;

  // The sets of the wire memory that are values() and gradients(); 0 at depth 1.
  virtual size_t value_set() const = 0;
  virtual size_t gradient_set() const = 0;

  // The rows of embedding tables, owned by the client; null: the model has none.
  virtual TableRows* table_rows() { return nullptr; }

  // Steps under way at a time: 1 or 2; with tables 1.
  virtual size_t depth() const = 0;

  // Fetches the blocks that have changed since the last pull or End, and rows (TableRows). Not to
  // be called between Begin and End.
  absl::Status Pull() { return PullFor(0, nullptr); }
  // Says whether a step is still to be computed; called about once a second, by any thread.
  using StillWanted = std::function<bool()>;
  // As Pull, but not 0: the values for this step of synchronous mode. Waits until the round of the
  // step before is committed; if `wanted` (null: true) becomes false meanwhile, for example because
  // the chief that commits it is gone, it takes the values as they are.
  virtual absl::Status PullFor(int64_t step, StillWanted wanted) = 0;
  // Asks for what PullFor(step) fetches, and returns, so that the values come as soon as that round
  // is committed. The next call, but for Drain, is PullFor or Pull, whose step need not be
  // the same. Not with rows of tables, and not between Begin and End.
  virtual void PullAhead(int64_t step) = 0;

  // Begins a step: the gradients of ticket `step` are computed from values().
  virtual void Begin(int64_t step, std::optional<Aggregation> aggregation = std::nullopt) = 0;
  // gradients()[variable] is complete and will not be modified before the next gradients().
  virtual void Offer(size_t variable) = 0;
  // The variable has no gradient in this step: what the servers have of it, optimizer slots
  // included, stays as it is, while gradients of zeros would move momenta and averages. Nothing of
  // it is sent, and its values come back all the same. Not with an Aggregation, whose mean needs
  // every part. No effect on a variable that was offered.
  virtual void Omit(size_t variable) = 0;
  // After the last Offer: all gradients are complete, or omitted. At depth 1, without an
  // Aggregation, waits until the step's values of another variable have arrived whole and returns
  // its position, so that the caller can use them while others are on their way. A variable is
  // returned again when its server was initialised again meanwhile: its array was rewritten, and
  // values read before are invalid. Returns nothing when all have arrived, or there is nothing to
  // wait for.
  virtual absl::StatusOr<std::optional<size_t>> NextValues() = 0;
  // All gradients are complete. Returns the step that has been acknowledged: at depth 1 this one,
  // at depth 2 the one before, or none after the first. A step is applied, or added to its round,
  // exactly once, however often it was sent; see PushResult::refused.
  virtual absl::StatusOr<std::optional<PushResult>> End() = 0;

  // Waits for the step that is still under way at depth 2, if any; for example before leaving.
  virtual absl::StatusOr<std::optional<PushResult>> Drain() = 0;

  // `servers[s]` has shard s from now on. Thread-safe, also during another call, which goes on
  // there: what was sent to a server that a shard has left, and was not acknowledged, is sent again
  // to the new one. Ignored, with a line in the log, unless there is one for each shard.
  virtual void SetServers(std::vector<BulkServer> servers) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CLIENT_H_
