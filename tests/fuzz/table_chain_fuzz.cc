// libFuzzer program for chains of snapshots of a table. Kinds of input: the state of the shard in a
// delta; that in the whole snapshot that it builds on; for each of up to three links the ids of its
// rows and those that were erased, each a byte that chooses among few ids, after their number.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/chain_merge.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_rows.h"
#include "core/tensor/initializer_proto.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kDeltaState, kWholeState, kIds, kNumKinds };

constexpr size_t kMostTestLinks = 3;
constexpr size_t kNumIds = 32;
constexpr char kTable[] = "users";
constexpr char kSlot[] = "Adagrad";

using Ids = std::vector<uint64_t>;
// The value of each row that there is.
using Rows = std::map<uint64_t, float>;

uint32_t PartitionOf(uint64_t id) { return RowPartitionOf(MixId(id, TableSalt(kTable))); }

// All of few partitions, so that these have several.
const Ids& Pool() {
  static const auto* const pool = [] {
    auto* const ids = new Ids;
    for (uint64_t i = 0; ids->size() < kNumIds; ++i) {
      const uint64_t id = i % 2 == 0 ? i : ~i;
      const uint32_t partition = PartitionOf(id);
      if (partition == 0 || partition == 7 || partition == kRowPartitions - 1) ids->push_back(id);
    }
    return ids;
  }();
  return *pool;
}

struct LinkIds {
  Ids rows;
  Ids erased;
};

bool Before(uint64_t a, uint64_t b) {
  return std::pair(PartitionOf(a), a) < std::pair(PartitionOf(b), b);
}

// Whether a snapshot may have them.
bool InOrder(const LinkIds& link) {
  const auto not_before = [](uint64_t a, uint64_t b) { return !Before(a, b); };
  return std::adjacent_find(link.rows.begin(), link.rows.end(), not_before) == link.rows.end() &&
         std::is_sorted(link.erased.begin(), link.erased.end(), Before);
}

v1::SnapshotBase NameOf(size_t link) {
  v1::SnapshotBase name;
  name.set_step(static_cast<int64_t>(link) + 1);
  name.set_snapshot_id(100 + link);
  return name;
}
std::string PrefixOf(size_t link) { return absl::StrCat("/job/model.ckpt-", link + 1); }

float ValueOf(size_t link, size_t row) { return static_cast<float>(1000 * (link + 1) + row); }

void AddCounts(const Ids& ids, google::protobuf::RepeatedField<int64_t>* counts) {
  counts->Resize(kRowPartitions, 0);
  for (const uint64_t id : ids) ++*counts->Mutable(static_cast<int>(PartitionOf(id)));
}

v1::ShardState StateOf(size_t link, const LinkIds& ids, const Rows& all) {
  v1::ShardState state;
  state.set_format(link == 0 ? kGhostlessShardStateFormat : kDeltaShardStateFormat);
  state.set_num_row_partitions(kRowPartitions);
  state.set_steps_done(static_cast<int64_t>(link) + 1);
  v1::ShardState::Table* const table = state.add_tables();
  table->set_name(kTable);
  table->set_dim(1);
  *table->mutable_initializer() = InitializerToProto({});
  table->set_total_rows(static_cast<int64_t>(ids.rows.size()));
  AddCounts(ids.rows, table->mutable_rows());
  if (link == 0) return state;
  *state.mutable_base() = NameOf(link - 1);
  Ids held;
  for (const auto& [id, value] : all) held.push_back(id);
  AddCounts(held, table->mutable_all_rows());
  table->set_total_erased(static_cast<int64_t>(ids.erased.size()));
  AddCounts(ids.erased, table->mutable_erased());
  return state;
}

void Must(const absl::Status& status) { Check(status.ok(), "a bundle can be written"); }

void WriteLink(MemoryFileSystem* files, size_t link, const LinkIds& ids, const std::string& state) {
  const auto go_on = [] { return absl::OkStatus(); };
  const std::string prefix = PrefixOf(link);
  auto writer = BundleDataWriter::Create(files, DataPath(prefix, 0, 1), 0);
  Must(writer.status());
  TableColumns columns;
  columns.Clear(1);
  columns.ids = ids.rows;
  for (size_t i = 0; i < ids.rows.size(); ++i) {
    columns.values.push_back(ValueOf(link, i));
    columns.slots[0].push_back(-ValueOf(link, i));
    columns.last_steps.push_back(static_cast<uint32_t>(link));
    columns.updates.push_back(1);
  }
  const auto count = [](const Ids& of) { return static_cast<int64_t>(of.size()); };
  Must(WriteTableColumns(kTable, 1, std::vector<TableSlot>{{kSlot, 1, 0}}, columns,
                         {0, count(ids.rows)}, writer->get(), go_on));
  if (link > 0) {
    Must(WriteErasedIds(kTable, ids.erased, {0, count(ids.erased)}, writer->get(), go_on));
  }
  Must((*writer)->AddString(ShardStateName(0, 1), state));
  v1::JobState job;
  job.set_global_step(NameOf(link).step());
  job.set_snapshot_id(NameOf(link).snapshot_id());
  Must((*writer)->AddString(kJobStateName, job.SerializeAsString()));
  auto entries = (*writer)->Finish();
  Must(entries.status());
  Must(WriteBundleIndex(files, prefix, 1, *std::move(entries)));
}

void Apply(size_t link, const LinkIds& ids, Rows* rows) {
  for (const uint64_t id : ids.erased) rows->erase(id);
  for (size_t i = 0; i < ids.rows.size(); ++i) (*rows)[ids.rows[i]] = ValueOf(link, i);
}

// The rows of the table, as a server restores them; nothing: they are refused.
std::optional<Rows> Restored(const BundleReader& bundle) {
  const auto stored = StoredTables::Open(&bundle);
  if (!stored.ok()) return std::nullopt;
  const StoredTable* const table = stored->Find(kTable);
  if (table == nullptr) return std::nullopt;
  const std::vector<TableSlot> slots = {{kSlot, 1, 0}};
  std::vector<std::string> missing;
  if (!stored->CheckColumns(*table, slots, &missing).ok() || table->spec.dim != 1) {
    return std::nullopt;
  }
  Rows rows;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    TableColumns columns;
    if (!stored->Read(*table, slots, p, &columns).ok()) return std::nullopt;
    Check(columns.rows() == table->partitions[p].all_rows, "there are as many rows as are said");
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      Check(PartitionOf(columns.ids[i]) == p, "rows are of their partition");
      Check(i == 0 || columns.ids[i - 1] < columns.ids[i], "ids ascend");
      Check(columns.slots[0][i] == -columns.values[i], "columns are of the same rows");
      rows[columns.ids[i]] = columns.values[i];
    }
  }
  return rows;
}

void CheckLookedUp(const std::string& prefix, MemoryFileSystem* files, const Rows& rows) {
  const auto stored = StoredRows::Open(prefix, files);
  Check(stored.ok(), "what is restored can be looked at");
  RowMatrix found;
  const absl::Status status =
      (*stored)->Read(*(*stored)->tables().Find(kTable), Pool(), {}, &found);
  Check(status.ok(), "what is restored can be looked up");
  for (size_t i = 0; i < Pool().size(); ++i) {
    const auto row = rows.find(Pool()[i]);
    Check(found.present[i] == (row != rows.end()), "the same rows are looked up");
    if (row != rows.end()) Check(found.rows[i] == row->second, "with the same values");
  }
}

std::optional<Rows> TestChain(MemoryFileSystem* files, const std::string& prefix) {
  const auto bundle = BundleReader::Open(prefix, files);
  Check(bundle.ok(), "the index is sound");
  const std::optional<Rows> rows = Restored(**bundle);
  const std::string merged = "/merged/model.ckpt-1";
  const absl::Status status = MergeChain(**bundle, merged, files);
  if (!rows.has_value()) return rows;
  CheckLookedUp(prefix, files, *rows);
  // A chain whose states name other things that a job's do cannot be merged.
  if (!status.ok()) return rows;
  const auto whole = BundleReader::Open(merged, files);
  Check(whole.ok(), "what was merged can be opened");
  Check(Restored(**whole) == rows, "a merged chain has the same rows");
  return rows;
}

std::unique_ptr<MemoryFileSystem> NewFiles() {
  auto files = std::make_unique<MemoryFileSystem>();
  Must(files->CreateDirectories("/job"));
  Must(files->CreateDirectories("/merged"));
  return files;
}

// A whole snapshot and a delta, in the order of the pool's ids.
std::vector<LinkIds> SmallChain() {
  std::vector<LinkIds> links(2);
  links[0].rows = Ids(Pool().begin(), Pool().begin() + 12);
  links[1].rows = Ids(Pool().begin() + 8, Pool().begin() + 16);
  links[1].erased = Ids(Pool().begin(), Pool().begin() + 3);
  for (LinkIds& link : links) {
    std::sort(link.rows.begin(), link.rows.end(), Before);
    std::sort(link.erased.begin(), link.erased.end(), Before);
  }
  return links;
}

// The chain with the state of one link replaced.
void TestState(size_t of_link, const std::string& input) {
  const std::unique_ptr<MemoryFileSystem> files = NewFiles();
  const std::vector<LinkIds> links = SmallChain();
  Rows all;
  for (size_t l = 0; l < links.size(); ++l) {
    Apply(l, links[l], &all);
    WriteLink(files.get(), l, links[l],
              l == of_link ? input : StateOf(l, links[l], all).SerializeAsString());
  }
  TestChain(files.get(), PrefixOf(links.size() - 1));
}

Ids TakeIds(absl::string_view* input, bool sorted) {
  Ids ids;
  if (input->empty()) return ids;
  const size_t count = std::min<size_t>(static_cast<uint8_t>((*input)[0]) % 32, input->size() - 1);
  for (size_t i = 1; i <= count; ++i) {
    ids.push_back(Pool()[static_cast<uint8_t>((*input)[i]) % kNumIds]);
  }
  input->remove_prefix(count + 1);
  if (sorted) std::sort(ids.begin(), ids.end(), Before);
  return ids;
}

void TestIds(absl::string_view input) {
  const std::unique_ptr<MemoryFileSystem> files = NewFiles();
  Rows all;
  bool in_order = true;
  size_t links = 0;
  while (!input.empty() && links < kMostTestLinks) {
    const bool sorted = (input[0] & 0x80) == 0;
    LinkIds link;
    link.rows = TakeIds(&input, sorted);
    if (links > 0) link.erased = TakeIds(&input, sorted);
    in_order = in_order && InOrder(link);
    Apply(links, link, &all);
    WriteLink(files.get(), links, link, StateOf(links, link, all).SerializeAsString());
    ++links;
  }
  if (links == 0) return;
  const std::optional<Rows> rows = TestChain(files.get(), PrefixOf(links - 1));
  Check(rows.has_value() == in_order, "chains are restored whose ids are in order");
  if (in_order) Check(*rows == all, "the newest link that has a row, or erased it, counts");
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::vector<LinkIds> links = SmallChain();
  Rows all;
  std::vector<std::string> states;
  for (size_t l = 0; l < links.size(); ++l) {
    Apply(l, links[l], &all);
    states.push_back(StateOf(l, links[l], all).SerializeAsString());
  }
  std::vector<std::string> seeds;
  AddSeeds(kDeltaState, {states[1], states[0], ""}, &seeds);
  AddSeeds(kWholeState, {states[0], states[1], ""}, &seeds);
  AddSeeds(kIds,
           {"\4abcd", "\4abcd\2ax\3bcy", "\4abcd\2ax\3bcy\1b\2aa",
            "\x84"
            "dcba",
            "\2aa", std::string("\4abcd\0\0\0\4abcd", 11)},
           &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  const google::protobuf::LogSilencer silencer;  // about texts that are not UTF-8
  switch (kind % kNumKinds) {
    case kDeltaState:
      return TestState(1, std::string(input));
    case kWholeState:
      return TestState(0, std::string(input));
    default:
      return TestIds(input);
  }
}

}  // namespace keelson
