// One entry in PTX, for tests of what is read off a program's text.
#pragma once
#include <memory>
#include <string>

#include "src/base/mutation/mutation.h"

namespace assay {

/// f(a: pointer, n: 32 bits): `body` from line 7 on, then ret.
inline ptx::MutableText small_program(const std::string& body) {
  return {std::make_shared<const std::string>(
              ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 a, .param .u32 "
              "n)\n{\n"
              ".reg .pred %p<9>; .reg .b32 %r<19>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n" +
              body + "\n$L_end:\nret;\n}\n"),
          "test.ptx"};
}

}  // namespace assay
