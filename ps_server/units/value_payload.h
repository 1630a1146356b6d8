// The values and rows in an answer; large blocks in float32 are not copied.
#ifndef KEELSON_PS_SERVER_UNITS_VALUE_PAYLOAD_H_
#define KEELSON_PS_SERVER_UNITS_VALUE_PAYLOAD_H_

#include <string>

#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"
#include "ps_server/units/block.h"

namespace keelson {

// Blocks' values one after another. Large float32 blocks are held in place until their bytes have
// been sent; those in other formats are encoded, and small ones are gathered into one piece.
class ValuePayload {
 public:
  // Adds a block's values. Elementwise formats only.
  void Add(BlockContentRef content, WireFormat format);
  // Adds what is encoded already.
  void AddBytes(std::string bytes);

  size_t size() const { return pieces_.size() + gathered_.size(); }

  // Returns the message that starts with `header`.
  ByteRope Finish(std::string header) &&;

 private:
  void Gather(const BlockContent& content, WireFormat format, size_t bytes);
  // Makes a piece of the gathered values.
  void Close();

  ByteRope pieces_;
  std::string gathered_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_VALUE_PAYLOAD_H_
