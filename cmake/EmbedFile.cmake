# cmake -DINPUT=FILE -DOUTPUT=SOURCE -DNAME=Function -P EmbedFile.cmake: SOURCE defines
# absl::string_view keelson::Function(), the bytes of FILE.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"absl/strings/string_view.h\"

namespace keelson {

absl::string_view ${NAME}() {
  static constexpr unsigned char kBytes[] = {
${bytes}
  };
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace keelson
")
