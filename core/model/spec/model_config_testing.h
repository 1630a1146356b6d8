// Reads models of tests.
#ifndef KEELSON_CORE_MODEL_SPEC_MODEL_CONFIG_TESTING_H_
#define KEELSON_CORE_MODEL_SPEC_MODEL_CONFIG_TESTING_H_

#include <google/protobuf/text_format.h>

#include <string>

#include "gtest/gtest.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Reads a text proto; fails the test if it is malformed.
inline v1::ModelConfig ParseModel(const std::string& text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_MODEL_CONFIG_TESTING_H_
