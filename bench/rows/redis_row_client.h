// Rows in Redis: the store that recommender systems put embedding tables into, in its best form.
#ifndef KEELSON_BENCH_ROWS_REDIS_ROW_CLIENT_H_
#define KEELSON_BENCH_ROWS_REDIS_ROW_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rows/redis_connection.h"
#include "bench/rows/row_client.h"

namespace keelson::bench {

// The table is a hash. A row is a field, named by its id's 8 bytes, of float32 without optimizer
// slots: less than Keelson's has. The client is written for this alone, without the objects that a
// general one makes of answers. Redis does no arithmetic on them, so a push reads the rows, adds
// the gradients' step (SGD) and writes the rows back; nothing makes that one transaction, though a
// real store would need it.
class RedisRowClient : public RowClient {
 public:
  static absl::StatusOr<std::unique_ptr<RedisRowClient>> Create(const RowTarget& target);

  absl::Status Fill(uint64_t rows) override;
  absl::Status Pull(const RowBatch& batch) override;
  absl::Status BeforePush(const RowBatch& batch) override { return absl::OkStatus(); }
  absl::Status Push(const RowBatch& batch) override;
  // UNIMPLEMENTED: Redis has no such call.
  absl::Status PushPull(const RowBatch& next) override;

 private:
  // An answer that is awaited: of an HMGET or HSET of the ids [first, first + count).
  struct Awaited {
    bool get = true;
    size_t first = 0;
    size_t count = 0;
  };

  RedisRowClient(RedisConnection connection, int64_t dim);

  // Sends the batch in pieces, several of them under way, and takes the answers; each piece is read
  // (and, with `update`, written after that), or written.
  absl::Status Walk(const RowBatch& batch, bool read, bool update);
  void Start(bool get, size_t first, size_t count);
  // Takes what has come of the oldest awaited answer; true: it is complete.
  absl::StatusOr<bool> TakeAnswer();
  absl::StatusOr<bool> TakeRows(const Awaited& awaited);
  // The end of the line at the beginning of what was received, with its "\r\n"; 0: not yet there.
  size_t LineEnd() const;
  absl::Status Unexpected() const;
  void Update(size_t first, size_t count);

  RedisConnection connection_;
  const size_t dim_;
  const std::string row_start_;  // "$64\r\n"
  const std::vector<uint64_t>* ids_ = nullptr;
  std::vector<float> rows_;       // of the batch
  std::vector<float> gradients_;  // of a piece
  std::deque<Awaited> awaited_;
  bool in_rows_ = false;  // the oldest awaited answer's header was taken
  size_t taken_ = 0;      // and so many of its rows
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_REDIS_ROW_CLIENT_H_
