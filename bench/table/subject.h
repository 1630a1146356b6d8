// What table_bench measures: tables that map ids to rows of float32.
#ifndef KEELSON_BENCH_TABLE_SUBJECT_H_
#define KEELSON_BENCH_TABLE_SUBJECT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/table/id_batches.h"
#include "core/table/initial_rows.h"

namespace keelson::bench {

class Subject {
 public:
  virtual ~Subject() = default;

  // Copies the values of the rows that exist, one after the other, to `out`; how many.
  virtual size_t Find(const IdBatch& batch, float* out) = 0;
  // Creates the rows, none of which exists, with their initial values.
  virtual void Insert(const IdBatch& batch) = 0;
  // Memory beside the values, as the table itself counts it.
  virtual std::optional<size_t> BytesOverValues() const { return std::nullopt; }
};

struct SubjectKind {
  std::string name;
  // Rows of `dim` values, whose initial values are `initial`'s, which outlives the subject. Null:
  // the library is absent from this build.
  std::function<std::unique_ptr<Subject>(size_t dim, const InitialRows* initial)> create;
};

// Other tables, in the same use: an index from ids to row numbers, beside an array of rows.
std::vector<SubjectKind> Peers();

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_SUBJECT_H_
