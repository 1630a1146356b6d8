#include "bench/table/measurement.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "bench/host_memory.h"
#include "bench/table/id_batches.h"
#include "bench/table/row_array.h"
#include "bench/table/row_table_subject.h"
#include "core/base/kernel_file.h"
#include "core/base/thread.h"
#include "core/optim/row_optimizer.h"
#include "core/table/initial_rows.h"
#include "core/table/row_layout.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_format.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson::bench {
namespace {

constexpr double kZipfExponent = 1.05;
constexpr uint64_t kSeed = 1;

const InitialRows& Initial() {
  static const auto* const initial =
      new InitialRows({Initializer::Kind::kUniform, -0.1f, 0.1f}, kSeed, kBenchSalt);
  return *initial;
}

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

// Rates are by this thread's processor time, of which other programs take nothing; they do take a
// part of the caches.
double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

size_t ResidentBytes() {
  // The second of its numbers.
  const std::vector<std::string> pages = absl::StrSplit(ReadKernelFile("/proc/self/statm"), ' ');
  size_t resident = 0;
  if (pages.size() < 2 || !absl::SimpleAtoi(pages[1], &resident)) return 0;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// The n-th batch of new rows.
IdBatch NewRows(uint64_t first, uint64_t rows) {
  std::vector<uint64_t> ids(std::min<uint64_t>(kBatchIds, rows - first));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = IdOfRow(first + i);
  return InRowOrder(std::move(ids));
}

std::vector<IdBatch> Batches(int count, const std::function<uint64_t()>& draw) {
  std::vector<IdBatch> batches;
  for (int i = 0; i < count; ++i) batches.push_back(DrawBatch(kBatchIds, draw));
  return batches;
}

struct Reads {
  std::vector<IdBatch> half, hits, zipf;
};

Reads DrawReads(const TableBenchOptions& options) {
  std::mt19937_64 random(kSeed);
  Reads reads;
  reads.half = Batches(options.batches, [&] { return random() % (2 * options.rows); });
  reads.hits = Batches(options.batches, [&] { return random() % options.rows; });
  const PowerLaw law(options.rows, kZipfExponent);
  reads.zipf = Batches(options.batches,
                       [&] { return law.Draw(static_cast<double>(random() >> 11) * 0x1p-53); });
  return reads;
}

// 10^6 ids in a second.
double FindRate(Subject* subject, const std::vector<IdBatch>& batches, size_t dim) {
  std::vector<float> out(kBatchIds * dim);
  const double begin = ProcessorSeconds();
  for (const IdBatch& batch : batches) subject->Find(batch, out.data());
  return static_cast<double>(batches.size() * kBatchIds) / (ProcessorSeconds() - begin) / 1e6;
}

// Bytes per row, at points of a growth.
struct Over {
  std::vector<double> samples;

  void Add(double bytes, double rows, double values) { samples.push_back((bytes - values) / rows); }
  double mean() const {
    return std::accumulate(samples.begin(), samples.end(), 0.0) /
           static_cast<double>(samples.size());
  }
  double worst() const { return *std::max_element(samples.begin(), samples.end()); }
};

// Grows the table; only the insertions are timed.
nlohmann::json Grow(Subject* subject, size_t dim, uint64_t rows) {
  constexpr int kSamples = 200;
  const size_t resident = ResidentBytes();
  const uint64_t every = std::max<uint64_t>(kBatchIds, rows / kSamples / kBatchIds * kBatchIds);
  Over rss, own;
  double seconds = 0;
  for (uint64_t first = 0; first < rows; first += kBatchIds) {
    const IdBatch batch = NewRows(first, rows);
    const double begin = ProcessorSeconds();
    subject->Insert(batch);
    seconds += ProcessorSeconds() - begin;
    if (first % every != 0 || first < rows / 10) continue;
    const auto count = static_cast<double>(first + batch.ids.size());
    const double values = count * static_cast<double>(dim * sizeof(float));
    rss.Add(static_cast<double>(ResidentBytes()) - static_cast<double>(resident), count, values);
    if (const std::optional<size_t> bytes = subject->BytesOverValues(); bytes.has_value()) {
      own.Add(static_cast<double>(*bytes), count, 0);
    }
  }
  nlohmann::json result = {{"insert", static_cast<double>(rows) / seconds / 1e6},
                           {"over_mean", rss.mean()},
                           {"over_worst", rss.worst()},
                           {"over_end", rss.samples.back()}};
  if (!own.samples.empty()) {
    result["own_mean"] = own.mean();
    result["own_worst"] = own.worst();
    result["own_end"] = own.samples.back();
  }
  return result;
}

std::unique_ptr<RowTableSubject> GrownTable(size_t dim, uint64_t rows,
                                            std::vector<RowSlot> slots = {}) {
  auto table = std::make_unique<RowTableSubject>(
      *RowLayout::Create(static_cast<int64_t>(dim), std::move(slots)), &Initial());
  for (uint64_t first = 0; first < rows; first += kBatchIds) table->Insert(NewRows(first, rows));
  return table;
}

// In turns by 1 thread and by 2, which begin at different ends: 10^6 ids in a second of the
// threads' processor time. Waiting for a lock is not in it; a lock is held for microseconds, and
// there are 256.
std::vector<std::vector<double>> RatesByThreads(
    int repeat, const std::vector<IdBatch>& batches,
    const std::function<double(const std::vector<IdBatch>&)>& rate) {
  const std::vector<IdBatch> others(batches.rbegin(), batches.rend());
  std::vector<std::vector<double>> rates(2);
  for (int i = 0; i < repeat; ++i) {
    rates[0].push_back(rate(batches));
    double second = 0;
    Thread thread([&] { second = rate(others); });
    const double first = rate(batches);
    thread.Join();
    rates[1].push_back(first + second);
  }
  return rates;
}

double UpdateRate(const RowOptimizer& optimizer, const std::vector<IdBatch>& batches,
                  RowTableSubject* table) {
  const size_t dim = optimizer.dim();
  const std::vector<float> gradients(kBatchIds * dim, 0.01f);
  std::vector<float*> values(kBatchIds);
  std::vector<uint16_t> updates(kBatchIds);
  std::vector<uint32_t> missed(kBatchIds);
  uint32_t step = 0;
  const double begin = ProcessorSeconds();
  for (const IdBatch& batch : batches) {
    ++step;
    table->Change(batch, [&](absl::Span<RowHeader* const> rows, size_t first) {
      for (size_t i = 0; i < rows.size(); ++i) {
        values[i] = rows[i]->values();
        updates[i] = rows[i]->updates;
      }
      const RowGradients of_rows = {
          WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradients.data() + first * dim),
          dim * sizeof(float)};
      optimizer.Update({absl::MakeSpan(values).first(rows.size()), of_rows,
                        absl::MakeSpan(updates).first(rows.size()),
                        absl::MakeSpan(missed).first(rows.size()), step, 0.01f, 0.01f});
      for (RowHeader* const row : rows) {
        row->last_step = step;
        row->updates = static_cast<uint16_t>(std::min(row->updates + 1, 65535));
      }
    });
  }
  return static_cast<double>(batches.size() * kBatchIds) / (ProcessorSeconds() - begin) / 1e6;
}

}  // namespace

nlohmann::json MeasureTable(const SubjectKind& kind, size_t dim, const TableBenchOptions& options) {
  HaveTheHostGiveMemory(options.rows * (dim * sizeof(float) + 128));
  const Reads reads = DrawReads(options);
  const std::unique_ptr<Subject> subject = kind.create(dim, &Initial());
  nlohmann::json result = Grow(subject.get(), dim, options.rows);
  std::vector<double> half, hits, zipf;
  for (int i = 0; i < options.repeat; ++i) {
    half.push_back(FindRate(subject.get(), reads.half, dim));
    hits.push_back(FindRate(subject.get(), reads.hits, dim));
    zipf.push_back(FindRate(subject.get(), reads.zipf, dim));
  }
  result["find_half"] = half;
  result["find_hits"] = hits;
  result["find_zipf"] = zipf;
  return result;
}

nlohmann::json MeasureLongestInsertion(const TableBenchOptions& options) {
  constexpr size_t kDim = 32;
  HaveTheHostGiveMemory(options.rows * (kDim * sizeof(float) + 64));
  RowTableSubject table(*RowLayout::Create(kDim, {}), &Initial());
  const auto preemptions = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  };
  double longest = 0, longest_preempted = 0;
  for (uint64_t first = 0; first < options.rows; first += kBatchIds) {
    const IdBatch batch = NewRows(first, options.rows);
    for (size_t p = 0; p < kRowPartitions; ++p) {
      const auto before = preemptions();
      const absl::Time begin = absl::Now();
      table.InsertPartition(batch, p);
      const double milliseconds = 1e3 * Seconds(begin);
      longest_preempted = std::max(longest_preempted, milliseconds);
      if (preemptions() == before) longest = std::max(longest, milliseconds);
    }
  }
  return {{"longest_ms", longest}, {"longest_preempted_ms", longest_preempted}};
}

nlohmann::json MeasureThreads(size_t dim, const TableBenchOptions& options) {
  HaveTheHostGiveMemory(options.rows * (dim * sizeof(float) + 64));
  const Reads reads = DrawReads(options);
  const std::unique_ptr<RowTableSubject> table = GrownTable(dim, options.rows);
  const auto rate = [&](const std::vector<IdBatch>& batches) {
    return FindRate(table.get(), batches, dim);
  };
  return {{"find_half", RatesByThreads(options.repeat, reads.half, rate)},
          {"find_hits", RatesByThreads(options.repeat, reads.hits, rate)}};
}

nlohmann::json MeasureUpdates(const TableBenchOptions& options) {
  constexpr size_t kDim = 32;
  HaveTheHostGiveMemory(options.rows * (2 * kDim * sizeof(float) + 64));
  std::vector<std::pair<std::string, v1::OptimizerConfig>> configs(3);
  configs[0].first = "adagrad";
  configs[0].second.mutable_adagrad();
  configs[1].first = "row-wise adagrad";
  configs[1].second.mutable_row_wise_adagrad();
  configs[2].first = "ftrl";
  configs[2].second.mutable_ftrl()->set_l1(1e-3f);
  configs[2].second.mutable_ftrl()->set_beta(1);
  const Reads reads = DrawReads(options);
  nlohmann::json result;
  for (const auto& [name, config] : configs) {
    const std::unique_ptr<RowOptimizer> optimizer = *CreateRowOptimizer(config, {}, kDim);
    std::vector<RowSlot> slots;
    for (const RowSlotSpec& slot : optimizer->slots()) {
      slots.push_back({static_cast<int64_t>(slot.floats), slot.initial_value});
    }
    const std::unique_ptr<RowTableSubject> table = GrownTable(kDim, options.rows, std::move(slots));
    result[name] = RatesByThreads(options.repeat, reads.hits, [&](const auto& batches) {
      return UpdateRate(*optimizer, batches, table.get());
    });
  }
  return result;
}

nlohmann::json MeasureBesideArray(size_t dim, const TableBenchOptions& options) {
  HaveTheHostGiveMemory(options.rows * 2 * (dim * sizeof(float) + 32));
  const Reads reads = DrawReads(options);
  const std::unique_ptr<RowTableSubject> table = GrownTable(dim, options.rows);
  // Rows of the same size, of which the values are read.
  constexpr size_t kHeaderFloats = sizeof(RowHeader) / sizeof(float);
  RowArray array(kHeaderFloats + dim);
  for (uint64_t row = 0; row < options.rows; ++row) {
    std::fill_n(array.Add(), kHeaderFloats + dim, 1.0f);
  }
  std::mt19937_64 random(kSeed);
  std::vector<uint32_t> wanted(reads.hits.size() * kBatchIds);
  for (uint32_t& row : wanted) row = static_cast<uint32_t>(random() % options.rows);
  std::vector<float> out(kBatchIds * dim);
  const auto read_array = [&] {
    const double begin = ProcessorSeconds();
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::copy_n(array.Row(wanted[i]) + kHeaderFloats, dim, out.data() + i % kBatchIds * dim);
    }
    return static_cast<double>(wanted.size()) / (ProcessorSeconds() - begin) / 1e6;
  };
  std::vector<double> find, of_array, ratio;
  for (int i = 0; i < options.repeat; ++i) {
    find.push_back(FindRate(table.get(), reads.hits, dim));
    of_array.push_back(read_array());
    ratio.push_back(find.back() / of_array.back());
  }
  return {{"find", find}, {"array", of_array}, {"ratio", ratio}};
}

}  // namespace keelson::bench
