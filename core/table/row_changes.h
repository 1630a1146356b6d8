// Which rows of a table have changed, and which ids were erased, since the cut of an earlier
// snapshot: what a snapshot that builds on that one has to have.
#ifndef KEELSON_CORE_TABLE_ROW_CHANGES_H_
#define KEELSON_CORE_TABLE_ROW_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace keelson {

// The changes between two cuts.
struct ChangesSince {
  // Of the table's rows at the later cut, those that were changed or made since the earlier one.
  int64_t rows = 0;
  // Ids that were erased between them. One may be in several sets, and may have a row again, which
  // then is among `rows`.
  std::vector<std::shared_ptr<const absl::flat_hash_set<uint64_t>>> erased;

  int64_t num_erased() const;
};

// Counts the rows by the generation (RowTable) in which they changed last, and remembers erased
// ids, of a generation all but those that have a row again. Takes a few bytes for each generation,
// and 9 to 20 for each id. Used by one RowTable, under its owner's lock; no call takes time that
// grows with the rows or the ids, but for a set's growth, which moves kMostErased ids at most.
class RowChanges {
 public:
  // More erased ids than this, or more generations, are not remembered: all is forgotten then, and
  // nothing counted any more.
  static constexpr size_t kMostErased = 16384;
  static constexpr size_t kMostGenerations = 64;

  // Counts from the cut on that begins with this generation. `most_erased` replaces kMostErased in
  // tests.
  explicit RowChanges(uint64_t generation, size_t most_erased = kMostErased)
      : most_erased_(most_erased) {
    generations_.push_back({generation, 0, nullptr});
  }

  // Another cut begins.
  void StartCut(uint64_t generation);
  // The changes from the cut `base` on to the newest one, before any change since; nothing: they
  // are not known.
  std::optional<ChangesSince> Since(uint64_t base) const;
  // What was before the cut `base` is not asked for any more.
  void ForgetBefore(uint64_t base);

  // A row changes for the first time in the newest generation, and had changed last in generation
  // `before`; a row is made; a row that has changed in the newest generation is erased.
  void NoteChange(uint64_t before);
  void NoteNew(uint64_t id);
  void NoteErased(uint64_t id);

  // Of ids in memory.
  size_t bytes() const;

 private:
  struct Generation {
    uint64_t number = 0;
    int64_t rows = 0;  // whose last change was in it
    // Null: none.
    std::shared_ptr<absl::flat_hash_set<uint64_t>> erased;
  };

  void ForgetAll();
  bool forgotten() const { return generations_.empty(); }

  const size_t most_erased_;
  size_t num_erased_ = 0;
  std::vector<Generation> generations_;  // ascending; empty: forgotten
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_CHANGES_H_
