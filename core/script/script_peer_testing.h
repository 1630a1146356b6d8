// The script's end of the connection, for tests: sends and receives the protocol's messages.
#ifndef KEELSON_CORE_SCRIPT_SCRIPT_PEER_TESTING_H_
#define KEELSON_CORE_SCRIPT_SCRIPT_PEER_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/script/script_message.h"

namespace keelson {

// The arrays of one table in a space of rows.
struct SpaceRows {
  SpaceRows(char* begin, size_t count, size_t dim)
      : ids(reinterpret_cast<uint64_t*>(begin)),
        positions(reinterpret_cast<int32_t*>(Behind(ids, count))),
        values(reinterpret_cast<float*>(Behind(positions, count))),
        gradients(reinterpret_cast<float*>(Behind(values, count * dim))),
        end(Behind(gradients, count * dim)) {}

  template <typename T>
  static char* Behind(T* array, size_t count) {
    const auto at = reinterpret_cast<uintptr_t>(array + count);
    return reinterpret_cast<char*>((at + 63) / 64 * 64);
  }

  uint64_t* const ids;
  int32_t* const positions;
  float* const values;
  float* const gradients;
  char* const end;
};

// Used by one thread. A failure is one of the test.
class ScriptPeer {
 public:
  ScriptPeer();
  ~ScriptPeer();

  // The agent's end, which belongs to the caller.
  int TakeAgentEnd();

  void Send(ScriptMessageKind kind, std::vector<uint64_t> numbers, const std::string& text = "");
  void SendBytes(const std::string& packet);
  void Hello() { Send(ScriptMessageKind::kHello, {kScriptProtocol}, "a test"); }
  void Step(uint64_t ticket, double loss);
  // Waits for the next message; none when the agent has closed its end.
  std::optional<ScriptMessage> Receive();
  // The numbers of the next message, which must be of this kind.
  std::vector<uint64_t> Expect(ScriptMessageKind kind);
  // Expects kModel, and maps the memory that comes with it.
  void ExpectModel();
  // Asks for a space of rows and maps it; the memory lasts as long as this object.
  char* MakeSpace(uint64_t space, uint64_t bytes);
  void Close();

  // The same of kEvaluation, whose numbers it returns.
  std::vector<uint64_t> ExpectEvaluation();
  // The memory's elements from byte `at` on.
  float* floats(size_t at) const {
    return reinterpret_cast<float*>(static_cast<char*>(memory_) + at);
  }

  // The arrays of variable `v`, which the memory's directory says where to find.
  absl::Span<const float> values(size_t v) const { return Array(v, 0); }
  absl::Span<float> gradients(size_t v) const { return Array(v, 1); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  absl::Span<float> Array(size_t v, size_t which) const;
  void Map(const std::vector<uint64_t>& numbers);
  void ReadDirectory(size_t bytes);

  int fd_ = -1, agent_end_ = -1;
  int passed_ = -1;  // the descriptor that the newest message came with
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<std::pair<void*, size_t>> spaces_;
  std::vector<std::string> names_;
  std::vector<size_t> elements_;
  std::vector<std::vector<size_t>> offsets_;  // values and gradients, by variable
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCRIPT_SCRIPT_PEER_TESTING_H_
