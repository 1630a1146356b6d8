// The messages between a script that computes gradients and its agent (docs/agent-protocol.md).
#ifndef KEELSON_CORE_SCRIPT_SCRIPT_MESSAGE_H_
#define KEELSON_CORE_SCRIPT_SCRIPT_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

inline constexpr uint64_t kScriptProtocol = 3;

enum class ScriptMessageKind : uint32_t {
  // From the script.
  kHello = 1,
  kNext = 2,
  kBegin = 3,
  kStep = 4,
  kSkip = 5,
  kEndTraining = 6,
  kLeave = 7,
  kSave = 8,
  kLog = 9,
  kRowSpace = 20,
  kRows = 21,
  kRowsAhead = 22,
  kOffer = 30,
  // From a script that evaluates.
  kScoring = 40,
  kScores = 41,
  kForm = 42,
  kPredicted = 43,
  kNotPredicted = 44,
  // From the agent.
  kModel = 101,
  kTicket = 102,
  kNoMore = 103,
  kReady = 104,
  kResult = 105,
  kFailed = 106,
  kBye = 107,
  kSaved = 108,
  kRowMemory = 120,
  kRowsReady = 121,
  // From the evaluator.
  kEvaluation = 140,
  kScore = 141,
  kPage = 142,
  kPredict = 143,
};

// A flag of kTicket: the values must be asked for with kBegin, however new they are.
inline constexpr uint64_t kTicketWantsValues = 1;
// The most records that one kTicket names.
inline constexpr size_t kTicketRecords = 4096;
// The most bytes of a message, with its header.
inline constexpr size_t kMostMessageBytes = 64 * 1024;

struct ScriptMessage {
  ScriptMessageKind kind = ScriptMessageKind::kHello;
  std::string body;  // the fields
};

// Appends fields to a message. All are little-endian.
class ScriptMessageWriter {
 public:
  explicit ScriptMessageWriter(ScriptMessageKind kind) { message_.kind = kind; }

  ScriptMessageWriter& Number(uint64_t value);
  ScriptMessageWriter& Number(int64_t value) { return Number(static_cast<uint64_t>(value)); }
  ScriptMessageWriter& Text(absl::string_view text);
  const ScriptMessage& message() const { return message_; }

 private:
  ScriptMessage message_;
};

// Takes fields off a message's front. A field that is not there makes ok() false, and is 0.
class ScriptMessageReader {
 public:
  // The message outlives the reader.
  explicit ScriptMessageReader(const ScriptMessage& message) : rest_(message.body) {}

  uint64_t Number();
  double Real();
  // All that is left.
  absl::string_view Text();
  // Whether all fields were there.
  bool ok() const { return ok_; }
  // Likewise, and nothing is left.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCRIPT_SCRIPT_MESSAGE_H_
