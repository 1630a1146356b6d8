#include "bench/rows/row_report.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

constexpr int64_t kIdBytes = 8;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// An id and a row or gradient of float32.
double PayloadBytes(int64_t dim) { return static_cast<double>(kIdBytes + kFloatBytes * dim); }

std::string Text(const Spread& spread, int digits = 2) {
  return absl::StrFormat("%.*f (%.*f-%.*f)", digits, spread.median, digits, spread.min, digits,
                         spread.max);
}

std::string OrDash(const Spread& spread) { return spread.max > 0 ? Text(spread) : "-"; }

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.0f", static_cast<double>(bytes) / 1e6);
}

json ToJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

class RowGoalChecker : public GoalList {
 public:
  explicit RowGoalChecker(const RowResults& results) : results_(results) {}

  void CheckRates() {
    struct Goal {
      Direction direction;
      double rows;
      double of_redis;  // 0: none
    };
    constexpr Goal kGoals[] = {
        {Direction::kPull, 4, 3}, {Direction::kPush, 3, 8}, {Direction::kPushPull, 2, 0}};
    for (const RowResult& result : results_.results) {
      if (result.scenario.workers > 1) continue;
      for (const Goal& goal : kGoals) {
        if (result.scenario.direction != goal.direction) continue;
        const std::string text = result.scenario.Text();
        AtLeast(absl::StrCat(text, ": 10^6 distinct rows/s"), goal.rows, result.rates.rows.median);
        if (goal.of_redis == 0 || !result.redis.has_value()) continue;
        AtLeast(absl::StrCat(text, " / Redis"), goal.of_redis, result.of_redis.median);
      }
    }
  }

  void CheckHotId() {
    const RowResult* uniform = nullptr;
    const RowResult* hot = nullptr;
    for (const RowResult& result : results_.results) {
      if (result.scenario.workers == 1) continue;
      (result.scenario.law == IdLaw::kHot ? hot : uniform) = &result;
    }
    if (uniform == nullptr || hot == nullptr) return;
    AtLeast(absl::StrCat("one id in every example, ", hot->scenario.workers, " workers / uniform"),
            0.8, hot->rates.rows.median / uniform->rates.rows.median);
  }

  void CheckBytes() {
    for (const auto& [format, bytes] : results_.bytes) {
      const double wanted = format == Name(Wire::kFloat32) ? 1.02 : 0.60;
      const double payload = PayloadBytes(results_.dim);
      const std::string text = absl::StrCat("bytes of a row / (8 + 4 dim), ", format);
      AtMost(absl::StrCat(text, ", push"), wanted, bytes.push / payload);
      AtMost(absl::StrCat(text, ", pull"), wanted, bytes.pull / payload);
    }
    if (results_.bytes.empty()) return;
    AtMost("bytes of an id without a row", 9, results_.bytes.front().bytes.absent);
  }

  void CheckSnapshot() {
    if (!results_.snapshot.has_value()) return;
    const RowSnapshotResult& snapshot = *results_.snapshot;
    AtMost("snapshot: longest cut, ms", 2,
           static_cast<double>(snapshot.longest_cut_microseconds) / 1e3);
    AtLeast("snapshot: rows/s during / before", 0.85, snapshot.ratio.median);
    AtLeast("snapshot: written / plain file", 0.7,
            snapshot.write.median / snapshot.plain_write.median);
    AtMost("snapshot: more memory / before", 0.25,
           static_cast<double>(snapshot.more_resident) / static_cast<double>(snapshot.resident));
    AtLeast("restore: 10^6 rows/s per core", 3, snapshot.restore_per_core.median);
    AtMost("delta of 1 % of the rows: bytes / whole", 0.015, snapshot.delta_bytes.median);
    AtMost("delta of 1 % of the rows: time / whole", 0.10, snapshot.delta_seconds.median);
  }

  void CheckExpiry() {
    if (!results_.expiry.has_value()) return;
    const RowExpiryResult& expiry = *results_.expiry;
    AtMost("expiry: p99 of a batch / without it", 1.10, expiry.p99_ms_with / expiry.p99_ms_without);
    AtLeast("expiry: memory with all rows / with them made again", 0.95,
            static_cast<double>(expiry.resident) / static_cast<double>(expiry.resident_again));
  }

  void CheckIdle() {
    if (results_.idle.has_value()) AtMost("idle server: % of a core", 1, *results_.idle * 100);
  }

 private:
  const RowResults& results_;
};

Table RateTable(const RowResults& results) {
  Table table{"Rows between processes: median (min-max)",
              {"scenario", "10^6 rows/s", "batch p50 ms", "client us/row", "server us/row",
               "raw socket GB/s", "of it", "Redis 10^6 rows/s", "of Redis"},
              {}};
  for (const RowResult& result : results.results) {
    // Both directions together, as the pushed and the pulled rows of a fused call.
    const double bytes = result.rates.rows.median * PayloadBytes(result.scenario.dim) / 1e3 *
                         (result.scenario.direction == Direction::kPushPull ? 2 : 1);
    table.rows.push_back(
        {result.scenario.Text(), Text(result.rates.rows),
         absl::StrFormat("%.1f", result.rates.p50_ms), OrDash(result.rates.client_cpu),
         OrDash(result.rates.server_cpu), Text(result.raw_socket),
         absl::StrFormat("%.2f", bytes / result.raw_socket.median),
         result.redis.has_value() ? Text(result.redis->rows) : "-", OrDash(result.of_redis)});
  }
  return table;
}

Table ByteTable(const RowResults& results) {
  Table table{absl::StrCat("Bytes of a row of dim ", results.dim,
                           " on the wire, with its id and all headers"),
              {"format", "push", "pull", "id without a row"},
              {}};
  for (const auto& [format, bytes] : results.bytes) {
    table.rows.push_back({format, absl::StrFormat("%.1f", bytes.push),
                          absl::StrFormat("%.1f", bytes.pull),
                          absl::StrFormat("%.1f", bytes.absent)});
  }
  return table;
}

Table SnapshotOfRowsTable(const RowResults& results) {
  Table table{
      "Training while snapshots are written, one after the other; restoring",
      {"rows", "file MB", "10^6 rows/s before", "during", "ratio", "write GB/s", "plain file GB/s",
       "longest cut us", "snapshots", "server MB before", "more MB during", "restored 10^6 rows/s",
       "per core", "write alone GB/s", "bytes of a delta of 1 %", "time of it"},
      {}};
  if (!results.snapshot.has_value()) return table;
  const RowSnapshotResult& snapshot = *results.snapshot;
  table.rows.push_back(
      {absl::StrCat(snapshot.rows), Megabytes(snapshot.bytes), Text(snapshot.rate_before),
       Text(snapshot.rate_during), Text(snapshot.ratio), Text(snapshot.write),
       Text(snapshot.plain_write), absl::StrCat(snapshot.longest_cut_microseconds),
       absl::StrCat(snapshot.snapshots), Megabytes(snapshot.resident),
       Megabytes(snapshot.more_resident), Text(snapshot.restore), Text(snapshot.restore_per_core),
       Text(snapshot.alone), Text(snapshot.delta_bytes, 4), Text(snapshot.delta_seconds, 3)});
  return table;
}

json RateJson(const RowResult& result) {
  json row = {{"scenario", result.scenario.name},
              {"law", Name(result.scenario.law)},
              {"dim", result.scenario.dim},
              {"workers", result.scenario.workers},
              {"mrows_per_s", ToJson(result.rates.rows)},
              {"p50_ms", result.rates.p50_ms},
              {"client_us_per_row", ToJson(result.rates.client_cpu)},
              {"server_us_per_row", ToJson(result.rates.server_cpu)},
              {"raw_socket_gbytes_per_s", ToJson(result.raw_socket)}};
  if (result.redis.has_value()) {
    row["redis_mrows_per_s"] = ToJson(result.redis->rows);
    row["of_redis"] = ToJson(result.of_redis);
  }
  return row;
}

json SnapshotAsJson(const RowSnapshotResult& snapshot) {
  return {{"rows", snapshot.rows},
          {"file_bytes", snapshot.bytes},
          {"mrows_per_s_before", ToJson(snapshot.rate_before)},
          {"mrows_per_s_during", ToJson(snapshot.rate_during)},
          {"ratio", ToJson(snapshot.ratio)},
          {"write_gbytes_per_s", ToJson(snapshot.write)},
          {"plain_write_gbytes_per_s", ToJson(snapshot.plain_write)},
          {"longest_cut_us", snapshot.longest_cut_microseconds},
          {"snapshots", snapshot.snapshots},
          {"server_bytes_before", snapshot.resident},
          {"server_bytes_more", snapshot.more_resident},
          {"restored_mrows_per_s", ToJson(snapshot.restore)},
          {"restored_mrows_per_s_per_core", ToJson(snapshot.restore_per_core)},
          {"write_alone_gbytes_per_s", ToJson(snapshot.alone)},
          {"delta_bytes_of_whole", ToJson(snapshot.delta_bytes)},
          {"delta_seconds_of_whole", ToJson(snapshot.delta_seconds)}};
}

json ExpiryAsJson(const RowExpiryResult& expiry) {
  return {{"rows", expiry.rows},
          {"expired", expiry.expired},
          {"left", expiry.left},
          {"p99_ms_without", expiry.p99_ms_without},
          {"p99_ms_with", expiry.p99_ms_with},
          {"server_bytes", expiry.resident},
          {"server_bytes_again", expiry.resident_again}};
}

}  // namespace

std::vector<GoalOutcome> CheckRowGoals(const RowResults& results) {
  RowGoalChecker check(results);
  check.CheckRates();
  check.CheckHotId();
  check.CheckBytes();
  check.CheckSnapshot();
  check.CheckExpiry();
  check.CheckIdle();
  return check.Take();
}

std::vector<Table> RowTables(const RowResults& results) {
  std::vector<Table> tables = {RateTable(results), ByteTable(results),
                               SnapshotOfRowsTable(results)};
  if (results.expiry.has_value()) {
    const RowExpiryResult& expiry = *results.expiry;
    tables.push_back({"Rows that expire",
                      {"rows", "expired", "left", "batch p99 ms without", "with",
                       "server MB with all rows", "made again"},
                      {{absl::StrCat(expiry.rows), absl::StrCat(expiry.expired),
                        absl::StrCat(expiry.left), absl::StrFormat("%.1f", expiry.p99_ms_without),
                        absl::StrFormat("%.1f", expiry.p99_ms_with), Megabytes(expiry.resident),
                        Megabytes(expiry.resident_again)}}});
  }
  if (results.idle.has_value()) {
    tables.push_back({"Idle: per cent of a core",
                      {"process", "cpu"},
                      {{"server with rows", absl::StrFormat("%.2f", *results.idle * 100)}}});
  }
  return tables;
}

json RowJson(const RowResults& results, const std::vector<GoalOutcome>& goals) {
  json report = {{"goals", json::array()}, {"rates", json::array()}, {"bytes", json::object()}};
  for (const GoalOutcome& goal : goals) {
    report["goals"].push_back(
        {{"goal", goal.goal}, {"wanted", goal.wanted}, {"found", goal.found}, {"met", goal.met}});
  }
  for (const RowResult& result : results.results) report["rates"].push_back(RateJson(result));
  for (const auto& [format, bytes] : results.bytes) {
    report["bytes"][format] = {
        {"push", bytes.push}, {"pull", bytes.pull}, {"absent", bytes.absent}};
  }
  if (results.snapshot.has_value()) report["snapshot"] = SnapshotAsJson(*results.snapshot);
  if (results.expiry.has_value()) report["expiry"] = ExpiryAsJson(*results.expiry);
  if (results.idle.has_value()) report["idle"] = *results.idle;
  return report;
}

}  // namespace keelson::bench
