#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/table/id_batches.h"
#include "bench/table/row_array.h"
#include "bench/table/subject.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"

// CMake says which are installed.
#ifdef KEELSON_BENCH_BOOST
#include <boost/unordered/unordered_flat_map.hpp>
#endif
#ifdef KEELSON_BENCH_CUCKOO
#include <libcuckoo/cuckoohash_map.hh>
#endif
#ifdef KEELSON_BENCH_ROBIN_MAP
#include <tsl/robin_map.h>
#endif
#ifdef KEELSON_BENCH_SPARSEHASH
#include <google/dense_hash_map>
#include <google/sparse_hash_map>
#endif
#ifdef KEELSON_BENCH_TBB
#include <tbb/concurrent_hash_map.h>
#endif

namespace keelson::bench {
namespace {

// The same for all, for some of the libraries take an id as its own hash.
struct IdHash {
  size_t operator()(uint64_t id) const { return MixId(id, kBenchSalt); }
};

// How an id's row number is looked up and stored, for most maps.
template <typename Map>
struct Access {
  static const uint32_t* Find(Map& map, uint64_t id, uint32_t* /*copy*/) {
    const auto found = map.find(id);
    return found == map.end() ? nullptr : &found->second;
  }
  static void Insert(Map& map, uint64_t id, uint32_t row) { map.insert({id, row}); }
  static void Prepare(Map& /*map*/) {}
};

#ifdef KEELSON_BENCH_CUCKOO
using Cuckoo = libcuckoo::cuckoohash_map<uint64_t, uint32_t, IdHash>;
template <>
struct Access<Cuckoo> {
  static const uint32_t* Find(Cuckoo& map, uint64_t id, uint32_t* copy) {
    return map.find(id, *copy) ? copy : nullptr;
  }
  static void Insert(Cuckoo& map, uint64_t id, uint32_t row) { map.insert(id, row); }
  static void Prepare(Cuckoo& /*map*/) {}
};
#endif

#ifdef KEELSON_BENCH_TBB
struct IdCompare {
  static size_t hash(uint64_t id) { return IdHash()(id); }
  static bool equal(uint64_t a, uint64_t b) { return a == b; }
};
using Tbb = tbb::concurrent_hash_map<uint64_t, uint32_t, IdCompare>;
template <>
struct Access<Tbb> {
  static const uint32_t* Find(Tbb& map, uint64_t id, uint32_t* copy) {
    Tbb::const_accessor accessor;
    if (!map.find(accessor, id)) return nullptr;
    *copy = accessor->second;
    return copy;
  }
  static void Insert(Tbb& map, uint64_t id, uint32_t row) { map.insert({id, row}); }
  static void Prepare(Tbb& /*map*/) {}
};
#endif

#ifdef KEELSON_BENCH_SPARSEHASH
using Dense = google::dense_hash_map<uint64_t, uint32_t, IdHash>;
template <>
struct Access<Dense> {
  static const uint32_t* Find(Dense& map, uint64_t id, uint32_t* /*copy*/) {
    const auto found = map.find(id);
    return found == map.end() ? nullptr : &found->second;
  }
  static void Insert(Dense& map, uint64_t id, uint32_t row) { map.insert({id, row}); }
  static void Prepare(Dense& map) { map.set_empty_key(~uint64_t{0}); }
};
#endif

template <typename Map>
class MapSubject : public Subject {
 public:
  MapSubject(size_t dim, const InitialRows* initial) : dim_(dim), initial_(initial), rows_(dim) {
    Access<Map>::Prepare(map_);
  }

  size_t Find(const IdBatch& batch, float* out) override {
    size_t found = 0;
    uint32_t copy = 0;
    for (const uint64_t id : batch.ids) {
      const uint32_t* const row = Access<Map>::Find(map_, id, &copy);
      if (row == nullptr) continue;
      std::copy_n(rows_.Row(*row), dim_, out + found * dim_);
      ++found;
    }
    return found;
  }

  void Insert(const IdBatch& batch) override {
    for (const uint64_t id : batch.ids) {
      Access<Map>::Insert(map_, id, static_cast<uint32_t>(rows_.rows()));
      initial_->Fill(id, absl::MakeSpan(rows_.Add(), dim_));
    }
  }

 private:
  const size_t dim_;
  const InitialRows* const initial_;
  Map map_;
  RowArray rows_;
};

template <typename Map>
SubjectKind Kind(std::string name) {
  return {std::move(name), [](size_t dim, const InitialRows* initial) -> std::unique_ptr<Subject> {
            return std::make_unique<MapSubject<Map>>(dim, initial);
          }};
}

}  // namespace

std::vector<SubjectKind> Peers() {
  std::vector<SubjectKind> peers = {
      Kind<absl::flat_hash_map<uint64_t, uint32_t, IdHash>>("absl::flat_hash_map"),
      {"boost::unordered_flat_map", nullptr},
      {"tsl::robin_map", nullptr},
      {"google::dense_hash_map", nullptr},
      {"google::sparse_hash_map", nullptr},
      {"libcuckoo", nullptr},
      {"tbb::concurrent_hash_map", nullptr},
      Kind<std::unordered_map<uint64_t, uint32_t, IdHash>>("std::unordered_map"),
  };
  const auto add = [&](SubjectKind kind) {
    for (SubjectKind& peer : peers) {
      if (peer.name == kind.name) peer = std::move(kind);
    }
  };
#ifdef KEELSON_BENCH_BOOST
  add(Kind<boost::unordered_flat_map<uint64_t, uint32_t, IdHash>>("boost::unordered_flat_map"));
#endif
#ifdef KEELSON_BENCH_ROBIN_MAP
  add(Kind<tsl::robin_map<uint64_t, uint32_t, IdHash>>("tsl::robin_map"));
#endif
#ifdef KEELSON_BENCH_SPARSEHASH
  add(Kind<Dense>("google::dense_hash_map"));
  add(Kind<google::sparse_hash_map<uint64_t, uint32_t, IdHash>>("google::sparse_hash_map"));
#endif
#ifdef KEELSON_BENCH_CUCKOO
  add(Kind<Cuckoo>("libcuckoo"));
#endif
#ifdef KEELSON_BENCH_TBB
  add(Kind<Tbb>("tbb::concurrent_hash_map"));
#endif
  (void)add;
  return peers;
}

}  // namespace keelson::bench
