#include "ps_server/units/table_partition.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/table/row_cut.h"
#include "core/wire/row_codec.h"

namespace keelson {
namespace {

// Rows that are worked on together: their lines are still in the cache when they are updated.
constexpr size_t kRowsAtATime = 96;
// Floats of the gradients that are decoded together.
constexpr size_t kFloatsAtATime = 16 * 1024;
// Places that a reader of a cut looks at, and rows that it copies, while it has the lock.
constexpr size_t kPlacesAtATime = 4096;
constexpr size_t kCutRowsAtATime = 128;
// Rows of which the worst one is evicted.
constexpr size_t kRowsDrawn = 16;
// Rows and freed rows that are looked at for moving rows while the lock is held, and bytes of rows
// below which none are moved.
constexpr size_t kPlacesCompacted = 512;
constexpr size_t kLeastCompacted = 4 * 1024;

size_t RowsAtATime(int64_t dim) {
  return std::clamp<size_t>(kFloatsAtATime / static_cast<size_t>(dim), 1, kRowsAtATime);
}

void NoteUpdate(int64_t step, RowHeader* row) {
  if (row->updates < std::numeric_limits<uint16_t>::max()) ++row->updates;
  row->last_step = std::max(row->last_step, static_cast<uint32_t>(step));
}

// Steps since a row's last update: 0 if the newest step has updated it.
uint64_t StepsSince(const RowHeader& row, int64_t clock) {
  return MissedSteps(row.last_step, clock + 1);
}

// Whether a row has stood still longer than another one, in steps over the number of its updates: a
// row with u updates may stand still u times as long as a row with one.
bool IsWorse(const RowHeader& row, const RowHeader& other, int64_t clock) {
  return StepsSince(row, clock) * std::max<uint64_t>(other.updates, 1) >
         StepsSince(other, clock) * std::max<uint64_t>(row.updates, 1);
}

}  // namespace

TableSize& TableSize::operator+=(const TableSize& other) {
  rows += other.rows;
  bytes += other.bytes;
  refused_rows += other.refused_rows;
  expired_rows += other.expired_rows;
  ghosts += other.ghosts;
  admitted_rows += other.admitted_rows;
  evicted_rows += other.evicted_rows;
  looked_up += other.looked_up;
  looked_up_absent += other.looked_up_absent;
  return *this;
}

TablePartition::TablePartition(absl::Span<const ServedTable> tables, size_t unit,
                               AppliedSequences* sequences)
    : tables_(tables), unit_(unit), sequences_(sequences), sizes_(tables.size()) {
  MutexLock lock(&mu_);
  for (size_t t = 0; t < tables.size(); ++t) {
    before_draw_.push_back(MixId(++draws_, unit_) % ServedTable::kIdsForOneHot);
    rows_.push_back(std::make_unique<RowTable>(&tables[t].rows));
    NoteSize(t);
  }
}

bool TablePartition::Apply(const PushIdentity& push, const RowTime& time,
                           absl::Span<const RowUpdate> updates) {
  MutexLock lock(&mu_);
  if (!TakeSequence(push)) {
    SkipGradients(updates);
    return false;
  }
  for (const RowUpdate& update : updates) {
    VisitGradients(update, [&](absl::Span<const uint64_t> ids, absl::Span<const float> gradients) {
      mu_.AssertHeld();
      UpdateRows(update.table, ids, time, gradients);
    });
    NoteSize(update.table);
    if (const auto ghosts = tables_[update.table].ghosts) NoteSize(*ghosts);
  }
  return true;
}

StageResult TablePartition::Stage(const PushIdentity& push, const RoundId& round, float weight,
                                  absl::Span<const RowUpdate> updates) {
  MutexLock lock(&mu_);
  if (sum_ != nullptr && round < sum_->id()) {
    SkipGradients(updates);
    return StageResult::kOutdated;
  }
  if (!TakeSequence(push)) {
    SkipGradients(updates);
    return StageResult::kDuplicate;
  }
  if (sum_ == nullptr || sum_->id() != round) {
    std::vector<size_t> dims;
    for (const ServedTable& table : tables_) dims.push_back(table.spec.dim);
    sum_ = std::make_unique<RowRoundSum>(round, dims);
  }
  RowRoundSum& sum = *sum_;
  sum.BeginPush(weight, push.order);
  for (const RowUpdate& update : updates) {
    VisitGradients(update, [&](absl::Span<const uint64_t> ids, absl::Span<const float> gradients) {
      sum.Add(update.table, ids, gradients);
    });
  }
  sum.EndPush();
  return StageResult::kAdded;
}

uint32_t TablePartition::Contributions(const RoundId& round) const {
  MutexLock lock(&mu_);
  return sum_ != nullptr && sum_->id() == round ? sum_->contributions() : 0;
}

void TablePartition::CommitRound(const RowTime& time) {
  MutexLock lock(&mu_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].optimizer == nullptr) continue;
    sum_->VisitMeans(t, RowsAtATime(tables_[t].spec.dim),
                     [&](absl::Span<const uint64_t> ids, absl::Span<const float> means) {
                       mu_.AssertHeld();
                       UpdateRows(t, ids, time, means);
                     });
    NoteSize(t);
    if (const auto ghosts = tables_[t].ghosts) NoteSize(*ghosts);
  }
  sum_ = nullptr;
}

void TablePartition::SkipGradients(absl::Span<const RowUpdate> updates) const {
  for (const RowUpdate& update : updates) {
    update.gradients->Skip(update.ids.size() *
                           RowBytes(update.format, tables_[update.table].spec.dim));
  }
}

void TablePartition::VisitGradients(const RowUpdate& update, GradientUser use) const {
  const int64_t dim = tables_[update.table].spec.dim;
  const size_t most = RowsAtATime(dim);
  std::vector<float> gradients(std::min(most, update.ids.size()) * dim);
  for (size_t begin = 0; begin < update.ids.size(); begin += most) {
    const absl::Span<const uint64_t> ids = update.ids.subspan(begin, most);
    const absl::Span<float> decoded = absl::MakeSpan(gradients).first(ids.size() * dim);
    TakeRows(update.format, update.gradients, dim, decoded);
    use(ids, decoded);
  }
}

size_t TablePartition::RoomFor(size_t table) const {
  const int64_t max_rows = tables_[table].spec.max_rows;
  if (max_rows == 0) return std::numeric_limits<size_t>::max();
  const auto most = static_cast<size_t>((max_rows - 1) / kRowPartitions + 1);
  const size_t rows = rows_[table]->rows();
  return rows < most ? most - rows : 0;
}

void TablePartition::DrawHot(size_t table, absl::Span<const uint64_t> ids) {
  size_t& before = before_draw_[table];
  while (before < ids.size()) {
    tables_[table].hot->Add(ids[before]);
    before += 1 + MixId(++draws_, unit_) % (2 * ServedTable::kIdsForOneHot - 1);
  }
  before -= ids.size();
}

void TablePartition::RowsToUpdate(size_t table, absl::Span<const uint64_t> ids, const RowTime& time,
                                  absl::Span<RowHeader*> rows) {
  const TableSpec& spec = tables_[table].spec;
  if (spec.expires()) EraseExpired(table, ids, time.clock);
  if (!spec.counts_ids()) return Make(table, ids, ids, time.clock, rows);
  rows_[table]->FindForChange(ids, rows);
  std::array<uint64_t, kRowsAtATime> absent;
  std::array<size_t, kRowsAtATime> positions;
  std::array<RowHeader*, kRowsAtATime> made;
  size_t n = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (rows[i] != nullptr) continue;
    absent[n] = ids[i];
    positions[n++] = i;
  }
  Admit(table, absl::MakeConstSpan(absent).first(n), ids, time, absl::MakeSpan(made).first(n));
  for (size_t i = 0; i < n; ++i) rows[positions[i]] = made[i];
}

void TablePartition::Admit(size_t table, absl::Span<const uint64_t> ids,
                           absl::Span<const uint64_t> batch, const RowTime& time,
                           absl::Span<RowHeader*> rows) {
  const size_t ghost_table = *tables_[table].ghosts;
  if (tables_[ghost_table].spec.expires()) EraseExpired(ghost_table, ids, time.clock);
  std::array<RowHeader*, kRowsAtATime> ghosts;
  std::array<uint64_t, kRowsAtATime> admitted;
  std::array<size_t, kRowsAtATime> positions;
  Make(ghost_table, ids, batch, time.clock, absl::MakeSpan(ghosts).first(ids.size()));
  size_t n = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows[i] = nullptr;
    if (ghosts[i] == nullptr) continue;
    NoteUpdate(time.step, ghosts[i]);
    if (ghosts[i]->updates < tables_[table].spec.admit_after) continue;
    admitted[n] = ids[i];
    positions[n++] = i;
  }
  std::array<RowHeader*, kRowsAtATime> made;
  Make(table, absl::MakeConstSpan(admitted).first(n), batch, time.clock,
       absl::MakeSpan(made).first(n));
  // What is refused keeps its count, and comes again with the next update.
  size_t erased = 0;
  for (size_t i = 0; i < n; ++i) {
    rows[positions[i]] = made[i];
    if (made[i] != nullptr) admitted[erased++] = admitted[i];
  }
  rows_[ghost_table]->Erase(absl::MakeConstSpan(admitted).first(erased));
  sizes_[table].admitted_rows.fetch_add(static_cast<int64_t>(erased), std::memory_order_relaxed);
}

void TablePartition::Make(size_t table, absl::Span<const uint64_t> ids,
                          absl::Span<const uint64_t> batch, int64_t clock,
                          absl::Span<RowHeader*> rows) {
  RowTable& all = *rows_[table];
  // An error is a row that could not be made, which is null.
  all.FindOrCreate(ids, RoomFor(table), rows).IgnoreError();
  if (tables_[table].spec.evict) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (rows[i] != nullptr) continue;
      if (!Evict(table, batch, clock)) break;
      all.FindOrCreate(ids.subspan(i, 1), 1, rows.subspan(i, 1)).IgnoreError();
    }
  }
  const auto refused = std::count(rows.begin(), rows.end(), nullptr);
  sizes_[table].refused_rows.fetch_add(refused, std::memory_order_relaxed);
}

bool TablePartition::Evict(size_t table, absl::Span<const uint64_t> batch, int64_t clock) {
  std::array<const RowHeader*, kRowsDrawn> drawn;
  const uint64_t random = MixId(++evictions_, unit_);
  const size_t n = rows_[table]->Sample(random, absl::MakeSpan(drawn));
  const RowHeader* worst = nullptr;
  for (const RowHeader* const row : absl::MakeConstSpan(drawn).first(n)) {
    if (StepsSince(*row, clock) == 0) continue;
    if (std::binary_search(batch.begin(), batch.end(), row->id)) continue;
    if (worst == nullptr || IsWorse(*row, *worst, clock)) worst = row;
  }
  if (worst == nullptr) return false;
  const uint64_t id = worst->id;
  rows_[table]->Erase({id});
  sizes_[table].evicted_rows.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void TablePartition::UpdateRows(size_t table, absl::Span<const uint64_t> ids, const RowTime& time,
                                absl::Span<const float> gradients) {
  std::array<RowHeader*, kRowsAtATime> headers;
  std::array<float*, kRowsAtATime> rows;
  std::array<uint16_t, kRowsAtATime> updates;
  std::array<uint32_t, kRowsAtATime> missed;
  const size_t n = ids.size();
  DrawHot(table, ids);
  RowsToUpdate(table, ids, time, absl::MakeSpan(headers).first(n));
  for (size_t i = 0; i < n; ++i) {
    RowHeader* const row = headers[i];
    rows[i] = row == nullptr ? nullptr : row->values();
    updates[i] = row == nullptr ? 0 : row->updates;
    missed[i] = row == nullptr || row->updates == 0 ? 0 : MissedSteps(row->last_step, time.step);
    if (row != nullptr) NoteUpdate(time.step, row);
  }
  RowBatch batch;
  batch.rows = absl::MakeConstSpan(rows).first(n);
  batch.gradients.data = reinterpret_cast<const uint8_t*>(gradients.data());
  batch.gradients.stride = tables_[table].spec.dim * sizeof(float);
  batch.updates = absl::MakeConstSpan(updates).first(n);
  batch.missed = absl::MakeConstSpan(missed).first(n);
  batch.step = time.step;
  batch.learning_rate = time.learning_rate;
  batch.missed_learning_rate = time.missed_learning_rate;
  tables_[table].optimizer->Update(batch);
}

void TablePartition::Read(const RowTime& time, absl::Span<const RowQuery> queries) const {
  MutexLock lock(&mu_);
  for (const RowQuery& query : queries) ReadRows(time, query);
}

void TablePartition::ReadRows(const RowTime& time, const RowQuery& query) const {
  const ServedTable& table = tables_[query.table];
  const int64_t dim = table.spec.dim;
  const size_t most = RowsAtATime(dim);
  std::array<const RowHeader*, kRowsAtATime> found;
  std::vector<const float*> values;
  std::vector<uint32_t> missed;
  std::vector<float> caught_up;
  RowAnswer& answer = *query.answer;
  const uint32_t rows_before = answer.num_rows;
  for (size_t begin = 0; begin < query.ids.size(); begin += most) {
    const absl::Span<const uint64_t> ids = query.ids.subspan(begin, most);
    rows_[query.table]->Find(ids, absl::MakeSpan(found).first(ids.size()));
    values.clear();
    missed.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (found[i] == nullptr || HasExpired(query.table, *found[i], time.clock)) continue;
      const size_t bit = query.first_bit + begin + i;
      answer.presence[bit / 8] |= static_cast<uint8_t>(1 << (bit % 8));
      values.push_back(found[i]->values());
      missed.push_back(MissedSteps(found[i]->last_step, time.step));
    }
    const size_t end = answer.rows.size();
    answer.rows.resize(end + values.size() * RowBytes(query.format, dim));
    auto* const to = reinterpret_cast<uint8_t*>(answer.rows.data()) + end;
    answer.num_rows += static_cast<uint32_t>(values.size());
    if (!table.optimizer->catches_up()) {
      EncodeRows(query.format, values, dim, to);
      continue;
    }
    caught_up.resize(values.size() * dim);
    RowReadBatch batch;
    batch.rows = values;
    batch.missed = missed;
    batch.step = time.step;
    batch.learning_rate = time.missed_learning_rate;
    batch.values = caught_up.data();
    batch.stride = dim;
    table.optimizer->Read(batch);
    EncodeRows(query.format, absl::MakeConstSpan(caught_up), dim, to);
  }
  const auto ids = static_cast<int64_t>(query.ids.size());
  const int64_t found_rows = answer.num_rows - rows_before;
  NotedSize& size = sizes_[query.table];
  size.looked_up.fetch_add(ids, std::memory_order_relaxed);
  size.looked_up_absent.fetch_add(ids - found_rows, std::memory_order_relaxed);
}

std::vector<TableSize> TablePartition::Sizes() const {
  std::vector<TableSize> sizes;
  for (const NotedSize& noted : sizes_) {
    TableSize& size = sizes.emplace_back();
    size.rows = noted.rows.load(std::memory_order_relaxed);
    size.bytes = noted.bytes.load(std::memory_order_relaxed);
    size.refused_rows = noted.refused_rows.load(std::memory_order_relaxed);
    size.expired_rows = noted.expired_rows.load(std::memory_order_relaxed);
    size.admitted_rows = noted.admitted_rows.load(std::memory_order_relaxed);
    size.evicted_rows = noted.evicted_rows.load(std::memory_order_relaxed);
    size.looked_up = noted.looked_up.load(std::memory_order_relaxed);
    size.looked_up_absent = noted.looked_up_absent.load(std::memory_order_relaxed);
  }
  return sizes;
}

void TablePartition::NoteSize(size_t table) {
  const RowTable& rows = *rows_[table];
  const size_t bytes =
      rows.row_bytes() + rows.index_bytes() + rows.undo_bytes() + rows.erased_bytes();
  sizes_[table].rows.store(static_cast<int64_t>(rows.rows()), std::memory_order_relaxed);
  sizes_[table].bytes.store(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void TablePartition::EraseExpired(size_t table, absl::Span<const uint64_t> ids, int64_t clock) {
  std::array<const RowHeader*, kRowsAtATime> rows;
  std::array<uint64_t, kRowsAtATime> expired;
  size_t n = 0;
  rows_[table]->Find(ids, absl::MakeSpan(rows).first(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (rows[i] != nullptr && HasExpired(table, *rows[i], clock)) expired[n++] = ids[i];
  }
  if (n > 0) Expire(table, absl::MakeConstSpan(expired).first(n));
}

void TablePartition::Expire(size_t table, absl::Span<const uint64_t> ids) {
  const size_t erased = rows_[table]->Erase(ids);
  sizes_[table].expired_rows.fetch_add(static_cast<int64_t>(erased), std::memory_order_relaxed);
}

bool TablePartition::Sweep(size_t table, int64_t clock, uint64_t* next, int64_t* seen) {
  MutexLock lock(&mu_);
  std::vector<uint64_t> expired;
  const bool more = rows_[table]->Visit(next, kSweptPlaces, [&](const RowHeader& row) {
    ++*seen;
    if (HasExpired(table, row, clock)) expired.push_back(row.id);
  });
  if (!expired.empty()) {
    Expire(table, expired);
    NoteSize(table);
  }
  return more;
}

bool TablePartition::Compact(size_t table) {
  MutexLock lock(&mu_);
  RowTable& rows = *rows_[table];
  const size_t used = rows.rows() * rows.layout().stride();
  if (rows.row_bytes() < kLeastCompacted || used > rows.row_bytes() / 4 * 3) return false;
  const bool more = rows.Compact(kPlacesCompacted);
  NoteSize(table);
  return more;
}

std::vector<TableCutSize> TablePartition::StartCut(uint64_t generation, const CutChanges& changes) {
  std::vector<TableCutSize> sizes;
  MutexLock lock(&mu_);
  for (size_t t = 0; t < rows_.size(); ++t) {
    rows_[t]->EndCut();
    rows_[t]->StartCut(generation).IgnoreError();  // none is open, and generations rise
    sizes.push_back(AccountForChanges(changes, rows_[t].get()));
    NoteSize(t);
  }
  cut_ = generation;
  return sizes;
}

TableCutSize TablePartition::AccountForChanges(const CutChanges& changes, RowTable* rows) {
  TableCutSize size;
  size.rows = static_cast<int64_t>(rows->rows());
  if (changes.since != 0) size.changes = rows->ChangesFrom(changes.since);
  if (!changes.keep) {
    rows->StopChanges();
  } else if (size.changes.has_value()) {
    rows->ForgetChangesBefore(changes.since);
  } else {
    rows->KeepChanges();
  }
  return size;
}

void TablePartition::EndCut(uint64_t generation) {
  MutexLock lock(&mu_);
  if (cut_ != generation) return;
  for (size_t t = 0; t < rows_.size(); ++t) {
    rows_[t]->EndCut();
    NoteSize(t);
  }
  cut_ = 0;
}

absl::Status TablePartition::ReadCut(uint64_t generation, size_t table, uint64_t since,
                                     RowVisitor visit, absl::FunctionRef<absl::Status()> go_on) {
  const auto ended = [&] {
    return absl::UnavailableError(
        absl::StrCat("table ", tables_[table].spec.name, ": the cut has been ended"));
  };
  std::unique_ptr<RowCutReader> reader;
  for (bool more = true; more;) {
    RETURN_IF_ERROR(go_on());
    MutexLock lock(&mu_);
    if (cut_ != generation) return ended();
    RowTable* const rows = rows_[table].get();
    if (reader == nullptr) {
      reader = since == 0 ? std::make_unique<RowCutReader>(rows)
                          : std::make_unique<RowCutReader>(rows, since);
    }
    more = reader->Collect(kPlacesAtATime);
  }
  reader->Sort();
  std::array<const RowHeader*, kCutRowsAtATime> rows;
  while (true) {
    RETURN_IF_ERROR(go_on());
    MutexLock lock(&mu_);
    if (cut_ != generation) return ended();
    ASSIGN_OR_RETURN(const size_t n, reader->Next(absl::MakeSpan(rows)));
    if (n == 0) return absl::OkStatus();
    visit(*rows_[table], absl::MakeConstSpan(rows).first(n));
  }
}

absl::Status TablePartition::AddRows(size_t table, absl::Span<const uint64_t> ids, RowFiller fill) {
  MutexLock lock(&mu_);
  rows_[table]->Reserve(ids.size());
  std::array<RowHeader*, kRowsAtATime> rows;
  for (size_t begin = 0; begin < ids.size(); begin += rows.size()) {
    const absl::Span<const uint64_t> part = ids.subspan(begin, rows.size());
    RETURN_IF_ERROR(rows_[table]->Add(part, absl::MakeSpan(rows).first(part.size())));
    for (size_t i = 0; i < part.size(); ++i) fill(begin + i, rows[i]);
    NoteSize(table);
  }
  return absl::OkStatus();
}

}  // namespace keelson
