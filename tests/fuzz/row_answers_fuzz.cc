// libFuzzer program for the rows of tables in a server's answer, as a client takes them. An input's
// first byte chooses the format that rows travel in, the second how the bytes of the answer, all
// others, are cut into fragments.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/client/exchange/row_transfer.h"
#include "core/table/row_testing.h"
#include "core/wire/row_codec.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

constexpr RowPartitionRun kHeld = {64, 128};
constexpr uint64_t kStore = 7;
constexpr WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                   WireFormat::kBfloat16, WireFormat::kInt8};

// A job whose one shard holds some of the partitions, and the ids of a batch that are wanted.
struct Job {
  explicit Job(WireFormat format) {
    const Initializer uniform = {Initializer::Kind::kUniform, -1, 1};
    for (const auto& [name, dim] : {std::pair("items", 3), std::pair("users", 1)}) {
      const uint64_t salt = TableSalt(name);
      layout.tables.push_back(
          {name, salt, dim, WireFormat::kFloat32, format, InitialRows(uniform, /*seed=*/5, salt)});
    }
    layout.held = {kHeld};
    plans = {{PlannedMessage()}};
    auto ids = std::make_shared<RowIds>();
    for (const PlannedTable& table : layout.tables) {
      std::vector<uint64_t> some;
      for (uint64_t id = 0; id < 24; ++id) some.push_back(id * 0x9e3779b97f4a7c15);
      ids->push_back(ListOf(some, table.salt, {0, kRowPartitions}).ids);
    }
    wanted = *BatchIds::Create(layout.tables, std::move(ids));
  }

  TablePlan layout;
  ShardPlans plans;
  std::shared_ptr<const BatchIds> wanted;
};

const Job& JobOf(WireFormat format) {
  static const auto* const jobs = [] {
    auto* const made = new std::vector<std::unique_ptr<Job>>;
    for (const WireFormat each : kFormats) made->push_back(std::make_unique<Job>(each));
    return made;
  }();
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (kFormats[i] == format) return *(*jobs)[i];
  }
  return *jobs->front();
}

// What the sections' bytes say, row by row.
RowMatrices Expected(const Job& job, absl::Span<const RowSection> sections, std::string bytes) {
  RowMatrices rows;
  for (size_t t = 0; t < job.layout.tables.size(); ++t) {
    rows.emplace_back((*job.wanted->ids())[t].size() *
                      static_cast<size_t>(job.layout.tables[t].dim));
  }
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  for (const RowSection& section : sections) {
    const PlannedTable& table = job.layout.tables[section.table];
    const auto dim = static_cast<size_t>(table.dim);
    const RowPartitionRun run = {section.first_partition, section.num_partitions};
    const absl::Span<const uint64_t> ids = job.wanted->Ids(section.table, run);
    float* row = rows[section.table].data() + job.wanted->Begin(section.table, run) * dim;
    const uint8_t* const bits = from;
    from += (section.num_ids + 7) / 8;
    for (size_t i = 0; i < ids.size(); ++i, row += dim) {
      if ((bits[i / 8] >> (i % 8) & 1) == 0) {
        table.absent.Fill(ids[i], {row, dim});
        continue;
      }
      DecodeRows(section.format, from, table.dim, {row, dim});
      from += RowBytes(section.format, table.dim);
    }
  }
  return rows;
}

bool SameBits(const RowMatrices& a, const RowMatrices& b) {
  for (size_t t = 0; t < a.size(); ++t) {
    if (a[t].size() != b[t].size() ||
        std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

void TestAnswer(WireFormat format, absl::string_view message, size_t step) {
  const Job& job = JobOf(format);
  const ByteRope rope = Cut(message, step);
  ByteCursor cursor(rope);
  BulkResponse answer;
  if (!DecodeBulkResponse(&cursor, &answer).ok()) return;
  const auto transfer = RowTransfer::ForPull(&job.layout, job.plans, job.wanted, {});
  Check(transfer->num_messages(0) == 1, "few ids fit into one message");
  const absl::StatusOr<uint64_t> bytes = transfer->CheckAnswer(0, 0, answer.rows);
  if (!bytes.ok() || *bytes > cursor.remaining()) return;
  cursor.Skip(cursor.remaining() - *bytes);
  if (!transfer->Take(0, 0, answer.rows, kStore, &cursor).ok()) {
    Check(!transfer->AllFrom(0, kStore), "what was refused has not come");
    return;
  }
  Check(cursor.remaining() == 0, "all bytes of the sections are read");
  Check(transfer->AllFrom(0, kStore) && !transfer->AllFrom(0, kStore + 1), "it came from there");
  const std::string payload(message.substr(message.size() - *bytes));
  Check(SameBits(transfer->TakeMatrices(), Expected(job, answer.rows, payload)),
        "rows are those of the answer, or initial ones");
}

// An answer in which every `nth` row is there.
std::string Seed(char choice, size_t nth) {
  const Job& job = JobOf(kFormats[static_cast<size_t>(choice)]);
  const auto transfer = RowTransfer::ForPull(&job.layout, job.plans, job.wanted, {});
  BulkResponse answer;
  std::string payload = "block";
  for (RowSection section : transfer->message(0, 0)->reads()) {
    std::string bits((section.num_ids + 7) / 8, '\0');
    for (size_t i = 0; i < section.num_ids; i += nth) {
      bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
      ++section.num_rows;
    }
    payload += bits;
    payload += std::string(
        section.num_rows * RowBytes(section.format, job.layout.tables[section.table].dim), '1');
    section.id_bytes = 0;
    answer.rows.push_back(section);
  }
  return std::string{choice, '\3'} + EncodeBulkResponse(answer, payload.size()) + payload;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (char choice = 0; choice < 4; ++choice) {
    for (const size_t nth : {1, 3, 100}) seeds.push_back(Seed(choice, nth));
  }
  return seeds;
}

}  // namespace
}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  keelson::TestAnswer(keelson::kFormats[data[0] % 4],
                      absl::string_view(reinterpret_cast<const char*>(data) + 2, size - 2),
                      data[1]);
  return 0;
}
