// Checks of flags that take a number. CLI11's own name the ends of the range of double, in 300
// digits, when they refuse a value.
#ifndef KEELSON_CORE_BASE_NUMBER_FLAGS_H_
#define KEELSON_CORE_BASE_NUMBER_FLAGS_H_

namespace CLI {
class Validator;
}

namespace keelson {

// Admits finite numbers above 0: `--lease: expected a number above 0, found "abc"`.
CLI::Validator PositiveNumber();

// Admits finite numbers from 0 up: `--limit: expected a number from 0 up, found "-1"`.
CLI::Validator NonNegativeNumber();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_NUMBER_FLAGS_H_
