// Video instructions, set and lop3 with a predicate: words that a transcription of PTX ISA 9.7.17 into
// integers without bounds gives, drawn over forms and parts; and what is refused.
#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace video_test {

struct Case {
  const char* body;
  uint32_t a, b, c, expected;
};

const Case drawn[] = {
    {"vadd.u32.s32.u32.sat %d, %a.h0, %b.b1;", 0x795b929e, 0x10c67fd9, 0xe8a8529f, 0x0},
    {"vadd.s32.s32.u32.max %d, %a.b0, %b, %c;", 0x42650644, 0x31162427, 0x78633074, 0x78633074},
    {"vadd.s32.u32.s32.sat.max %d, %a.b3, %b.b0, %c;", 0x8cb4a0d7, 0xa399f82a, 0x3b5f3d86, 0x3b5f3d86},
    {"vadd.u32.u32.s32 %d.b3, %a.h0, %b.h0, %c;", 0xde383784, 0x63d2e490, 0xabe19f58, 0x14e19f58},
    {"vadd.u32.s32.s32.sat %d, %a, %b;", 0x28ce6f24, 0x97524d6a, 0x0, 0x0},
    {"vsub.u32.s32.u32.sat %d.b1, %a.h0, %b, %c;", 0xebcd1f5e, 0xba6676b3, 0x71d2af72, 0x71d20072},
    {"vsub.s32.u32.s32 %d, %a.b2, %b.b3;", 0x2257989f, 0x18f2c41c, 0x7f80fe01, 0x3f},
    {"vsub.s32.s32.u32 %d.h0, %a, %b, %c;", 0xff8000, 0xdaf0105b, 0xff8000, 0xff6fa5},
    {"vsub.s32.s32.s32.sat.min %d, %a.b0, %b.h0, %c;", 0x88bafad9, 0x95918694, 0x80ff7f01, 0x80ff7f01},
    {"vsub.s32.u32.u32.add %d, %a.b3, %b, %c;", 0xedcf6109, 0xffffffff, 0xabd8952c, 0xabd8961a},
    {"vabsdiff.s32.s32.s32 %d, %a, %b;", 0xb6bcb64f, 0xa20ab57c, 0x92d3043a, 0x14b200d3},
    {"vabsdiff.u32.u32.s32.sat.min %d, %a.h1, %b.h1, %c;", 0x1, 0x7f80fe01, 0x1, 0x1},
    {"vabsdiff.u32.s32.s32 %d, %a, %b;", 0x26988f4f, 0xff8000, 0xdf6da8e1, 0x25990f4f},
    {"vabsdiff.s32.u32.s32.sat.max %d, %a.b3, %b.b3, %c;", 0x0, 0x80ff7f01, 0xec007b1b, 0x80},
    {"vabsdiff.s32.s32.u32.add %d, %a.h1, %b.h0, %c;", 0x81633acf, 0x0, 0x1, 0x7e9e},
    {"vmin.u32.u32.s32.add %d, %a.h1, %b.b0, %c;", 0x4aa71c38, 0x27fca832, 0xfad9d3a9, 0xfad9d3db},
    {"vmin.s32.s32.u32 %d.b1, %a.h0, %b.b3, %c;", 0x5057326c, 0x7fffffff, 0x60b6cbb1, 0x60b67fb1},
    {"vmin.s32.u32.s32.sat.min %d, %a.h0, %b.b1, %c;", 0xff8000, 0x987c88bb, 0x1a423667, 0xffffff88},
    {"vmin.u32.u32.u32 %d.b3, %a.h1, %b.b1, %c;", 0xf0cc8de3, 0x4573f541, 0xb866517e, 0xf566517e},
    {"vmin.u32.s32.u32.add %d, %a.h0, %b.b3, %c;", 0xefba436b, 0xffffffff, 0x8c65f067, 0x8c65f166},
    {"vmax.u32.s32.s32.sat.add %d, %a.b2, %b.b0, %c;", 0x7fffffff, 0x80ff7f01, 0xade562bc, 0xade562bd},
    {"vmax.u32.u32.u32.add %d, %a.h1, %b.b0, %c;", 0x9bde8163, 0xbcefd0a7, 0x96e16894, 0x96e20472},
    {"vmax.s32.u32.u32 %d, %a, %b;", 0x0, 0x40498cb3, 0x4c736db3, 0x40498cb3},
    {"vmax.s32.s32.u32.min %d, %a.b2, %b.b0, %c;", 0x51ed2f15, 0x7fffffff, 0x80ff7f01, 0x80ff7f01},
    {"vmax.u32.s32.s32 %d.b3, %a.b2, %b.b2, %c;", 0x439e7fa9, 0xff8000, 0x0, 0xff000000},
    {"vshl.s32.s32.u32.sat.clamp.min %d, %a.h1, %b.b3, %c;", 0x44f5f725, 0x3, 0xa6482fe6, 0xa6482fe6},
    {"vshl.u32.u32.u32.sat.wrap.add %d, %a.h0, %b.h1, %c;", 0x80ff7f01, 0x1f, 0x703cff0b, 0x703d7e0c},
    {"vshl.u32.s32.u32.sat.wrap %d.b2, %a.h0, %b.b0, %c;", 0x80000000, 0x3, 0x1, 0x1},
    {"vshl.s32.s32.u32.clamp %d.h1, %a.b2, %b.b0, %c;", 0x30d884ad, 0x3, 0x57116d4c, 0xfec06d4c},
    {"vshl.u32.s32.u32.wrap.max %d, %a.b1, %b.b2, %c;", 0x5864742b, 0x28, 0xffffffff, 0xffffffff},
    {"vshr.s32.u32.u32.clamp %d.b2, %a.h1, %b.b0, %c;", 0xff8000, 0x21, 0xd521505f, 0xd500505f},
    {"vshr.s32.u32.u32.sat.clamp.max %d, %a.b0, %b.b0, %c;", 0x6f31b692, 0x3, 0x38daf051, 0x38daf051},
    {"vshr.u32.s32.u32.sat.wrap.min %d, %a.b3, %b, %c;", 0xd631e26f, 0x21, 0x49fea54b, 0x0},
    {"vshr.s32.s32.u32.sat.clamp.min %d, %a.h0, %b.b3, %c;", 0x80000000, 0x3, 0x49799084, 0x0},
    {"vshr.s32.u32.u32.sat.clamp.min %d, %a.b1, %b.b1, %c;", 0xb8a276b, 0x28, 0xe651171d, 0xe651171d},
    {"vset.s32.u32.lt.max %d, %a.b2, %b.b3, %c;", 0xffffffff, 0x0, 0x69eb8cb4, 0x69eb8cb4},
    {"vset.u32.u32.ne.add %d, %a.h1, %b.b2, %c;", 0x1, 0xffffffff, 0x8a7db67f, 0x8a7db680},
    {"vset.u32.u32.eq.add %d, %a, %b.b0, %c;", 0xc846756a, 0x80000000, 0x1, 0x1},
    {"vset.s32.u32.eq.add %d, %a.b0, %b.h1, %c;", 0xffffffff, 0xce595c72, 0x0, 0x0},
    {"vset.s32.s32.ne %d, %a, %b.b1;", 0x922631c6, 0xcc85574, 0x3f8de0e1, 0x1},
    {"vmad.u32.s32.s32.po.sat.shr7 %d, %a, %b.b3, %c;", 0xc6c88cfe, 0xdb65d2a4, 0x7fffffff, 0x118a073e},
    {"vmad.s32.s32.s32.po.shr15 %d, %a.b0, %b.b3, %c;", 0x0, 0x0, 0x160c7c39, 0x2c18},
    {"vmad.s32.s32.s32.shr15 %d, %a.h1, -%b.b3, %c;", 0x7d7015fc, 0x80ff7f01, 0xff8000, 0x27c},
    {"vmad.s32.s32.u32 %d, %a.b1, %b.h1, %c;", 0x962c4706, 0xffffffff, 0x80ff7f01, 0x81467eba},
    {"vmad.u32.u32.u32.sat.shr7 %d, %a.b2, -%b.h1, %c;", 0x20ab0e21, 0xb74e9504, 0xcb984da3, 0xff963bb9},
    {"vadd2.u32.u32.u32.add %d, %a, %b, %c;", 0x7f80fe01, 0xc859e78d, 0xa2fd39d9, 0xa3006740},
    {"vadd2.s32.s32.u32 %d.h0, %a, %b, %c;", 0x9f781c98, 0xd95a701, 0x7f80fe01, 0x7f80c399},
    {"vadd2.u32.u32.s32.add %d, %a, %b, %c;", 0x50a078d8, 0xb1b20f01, 0x496be39, 0x4974864},
    {"vsub2.u32.s32.u32.sat %d, %a, %b, %c;", 0x1, 0x3974f660, 0xe13201b6, 0x0},
    {"vsub2.u32.s32.u32 %d, %a, %b, %c;", 0x80ff7f01, 0xffffffff, 0x1, 0x81007f02},
    {"vsub2.s32.u32.s32.add %d.h0, %a, %b.h32, %c;", 0xbb45628c, 0xe328f187, 0x605dafd9, 0x605e20de},
    {"vavrg2.s32.s32.s32 %d.h1, %a.h13, %b.h12, %c;", 0x1, 0xb771eb29, 0x7fffffff, 0xffff},
    {"vavrg2.u32.u32.s32 %d.h10, %a, %b.h23, %c;", 0xff8000, 0x1, 0xa8c1c974, 0x804000},
    {"vavrg2.s32.s32.s32.add %d.h1, %a.h01, %b.h23, %c;", 0x2ddd02b6, 0x576b7da1, 0x1f0c6f07, 0x1f0caf33},
    {"vabsdiff2.u32.u32.u32 %d, %a, %b, %c;", 0xb243f13d, 0x943e5a22, 0x1, 0x1e05971b},
    {"vabsdiff2.u32.u32.s32 %d, %a, %b, %c;", 0x80000000, 0x1, 0xfa6d693, 0x80000001},
    {"vabsdiff2.s32.s32.s32 %d, %a, %b, %c;", 0xde927b4e, 0xd3fbb249, 0x7fffffff, 0xa97c905},
    {"vmin2.s32.s32.u32.add %d, %a, %b, %c;", 0xc0e836c4, 0x40bdcb74, 0xff8000, 0xff77ac},
    {"vmin2.u32.s32.u32.sat %d, %a, %b, %c;", 0x8e7fdffb, 0x15508f3c, 0x80000000, 0x0},
    {"vmin2.s32.u32.u32.add %d, %a, %b, %c;", 0x69af5117, 0xf7934ad9, 0x7f80fe01, 0x7f81b289},
    {"vmax2.u32.u32.s32.sat %d, %a, %b, %c;", 0x263a521c, 0x7f80fe01, 0xeaa73d79, 0x7f80521c},
    {"vmax2.s32.s32.u32.add %d, %a, %b, %c;", 0xf3608d48, 0xb80a8700, 0x22e38f40, 0x22e4ce4a},
    {"vmax2.s32.u32.u32 %d, %a, %b, %c;", 0x80000000, 0x80ff7f01, 0xd9fb4ff5, 0x80ff7f01},
    {"vset2.s32.s32.gt %d, %a, %b.h30, %c;", 0xdaf48e79, 0xda881dc2, 0xfbd74f42, 0x10000},
    {"vset2.s32.u32.ge %d.h0, %a.h32, %b.h33, %c;", 0x80000000, 0xffffffff, 0x61fbe92f, 0x61fb0000},
    {"vset2.u32.s32.le %d, %a, %b, %c;", 0x80ff7f01, 0x7f80fe01, 0x24c3a235, 0x0},
    {"vadd4.s32.u32.u32.sat %d.b210, %a.b7267, %b.b3636, %c;", 0x34ac7eb9, 0xd5a91d4c, 0xa70376ba,
     0xa77f7f7f},
    {"vadd4.s32.s32.s32.sat %d.b321, %a.b0457, %b, %c;", 0x7b366e94, 0x12872361, 0x66779722, 0xa6e84622},
    {"vadd4.s32.u32.s32 %d.b32, %a.b1540, %b, %c;", 0xe1c0fced, 0x77a7365a, 0xe417d4f1, 0x73ddd4f1},
    {"vsub4.u32.s32.u32.sat %d, %a, %b, %c;", 0x11bb4e07, 0xda97fa80, 0x80000000, 0x0},
    {"vsub4.s32.s32.u32.add %d, %a, %b, %c;", 0x2331df81, 0x0, 0x41483337, 0x414832eb},
    {"vsub4.s32.s32.s32.sat %d, %a, %b, %c;", 0x0, 0xff8000, 0x1, 0x17f00},
    {"vavrg4.u32.u32.s32 %d, %a, %b, %c;", 0x4ab1016c, 0x7f80fe01, 0xacee0cfb, 0x6519ff37},
    {"vavrg4.u32.u32.u32.add %d, %a, %b, %c;", 0x0, 0xff8000, 0x1, 0xc1},
    {"vavrg4.u32.s32.u32.add %d.b2, %a, %b, %c;", 0x7f80fe01, 0x80ff7f01, 0xffffffff, 0x3f},
    {"vabsdiff4.u32.u32.s32.sat %d, %a, %b, %c;", 0xffffffff, 0x80ff7f01, 0x5e519f81, 0xffff80fe},
    {"vabsdiff4.s32.s32.s32.add %d.b2, %a.b3152, %b.b1072, %c;", 0x4ba81e31, 0xab82ef46, 0xce599ed6,
     0xce599ee9},
    {"vabsdiff4.s32.u32.s32 %d, %a, %b, %c;", 0x1b6f390f, 0xf6197c0e, 0x1, 0x25564301},
    {"vmin4.s32.s32.s32 %d.b31, %a, %b.b1206, %c;", 0xffffffff, 0x90ff072e, 0xa55566e7, 0xff55ffe7},
    {"vmin4.s32.u32.s32 %d, %a, %b, %c;", 0xa181a49d, 0x80ff7f01, 0xa7c66a0d, 0x80ff7f01},
    {"vmin4.s32.u32.s32.sat %d.b0, %a, %b.b7544, %c;", 0x1bb4085e, 0x2431c216, 0xa51d4257, 0xa51d4216},
    {"vmax4.s32.s32.s32.add %d, %a, %b.b2472, %c;", 0x4cf1e9c0, 0x752c1460, 0xc83f0249, 0xc83f035b},
    {"vmax4.s32.s32.u32.add %d, %a, %b, %c;", 0x1, 0x7fffffff, 0x8b0ae742, 0x8b0aeabe},
    {"vmax4.s32.s32.u32.sat %d.b310, %a.b0637, %b.b7331, %c;", 0x64508f66, 0xffffffff, 0x0, 0x7f00647f},
    {"vset4.u32.u32.gt %d.b210, %a, %b.b4443, %c;", 0x3f484192, 0x83c4c48d, 0x80ff7f01, 0x80000001},
    {"vset4.u32.u32.ne %d.b21, %a.b4121, %b, %c;", 0x72bf5609, 0xc58ecfcb, 0x7f80fe01, 0x7f010101},
    {"vset4.s32.u32.le %d, %a.b4053, %b.b7324, %c;", 0x1cb49c06, 0x1, 0x9079ccab, 0x10100},
};

/// By hand.
const Case chosen[] = {
    {"vadd.u32.u32.u32.sat %d, %a, %b;", 0xffffffff, 1, 0, 0xffffffff},
    {"vsub.s32.u32.u32.sat %d.b1, %a, %b, %c;", 0, 200, 0x11223344, 0x11228044},  // -200 is -128 there
    {"vabsdiff.u32.s32.s32.add %d, %a.b0, %b.b0, %c;", 0x80, 0x7f, 1, 256},
    {"vadd.s32.s32.s32.max %d, %a, %b, %c;", 0x7fffffff, 1, 0, 0x80000000},  // 2^31, which is the larger
    {"vshl.u32.u32.u32.sat.clamp %d, %a, %b;", 3, 31, 0, 0xffffffff},
    {"vshl.u32.u32.u32.clamp %d, %a, %b;", 3, 40, 0, 0},
    {"vshr.s32.s32.u32.wrap %d, %a, %b;", 0x80000000, 33, 0, 0xc0000000},
    {"vmad.s32.s32.s32.shr7 %d, %a.h0, -%b.h1, %c;", 1000, 0x00800000, 64, 0xfffffc18},  // -128000 + 64
    {"vmad.u32.u32.u32.po %d, %a.b0, %b.b0, %c;", 255, 255, 1, 65027},
    {"vset.s32.u32.lt %d, %a, %b;", 0xffffffff, 0, 0, 1},
    {"vadd4.s32.s32.s32.sat %d, %a, %b, %c;", 0x7f80017f, 0x0180ff01, 9, 0x7f80007f},
    {"vadd2.u32.u32.u32.add %d.h1, %a, %b, %c;", 0xffff0001, 0x00010001, 5, 0x10005},
    {"vavrg4.s32.s32.s32 %d, %a, %b, %c;", 0x01fffe02, 0x0200fd05, 0, 0x02fffd04},
    {"vabsdiff4.u32.u32.s32 %d.b20, %a.b0000, %b.b4567, %c;", 1, 0x80000000, 0x0a0b0c0d, 0x0a010c81},
    {"vset2.u32.u32.ge %d, %a, %b, %c;", 0x00050001, 0x00050002, 7, 0x00010000},
    // %q holds where c is odd.
    {"lop3.or.b32 %d|%r, %a, %b, %c, 0xc0, %q; @%r add.u32 %d, %d, 1;", 6, 3, 1, 3},
    {"lop3.or.b32 %d|%r, %a, %b, %c, 0xc0, %q; @%r add.u32 %d, %d, 1;", 4, 3, 2, 0},
    {"lop3.and.b32 %d|%r, %a, %b, %c, 0xc0, !%q; @%r add.u32 %d, %d, 8;", 6, 3, 2, 10},
    {"lop3.and.b32 _|%r, %a, %b, %c, 0xc0, %q; selp.u32 %d, 1, 2, %r;", 6, 3, 2, 2},
    {"set.lt.and.u32.s32 %d, %a, %b, %q;", 0xffffffff, 0, 1, 0xffffffff},
    {"set.lt.and.u32.s32 %d, %a, %b, %q;", 0xffffffff, 0, 2, 0},
    {"set.lt.or.u32.u32 %d, %a, %b, !%q;", 5, 3, 2, 0xffffffff},
    {"set.lo.xor.f32.u32 %d, %a, %b, %q;", 5, 7, 2, 0x3f800000},
    {"set.gt.xor.f16x2.f16x2 %d, %a, %b, %q;", 0x3c004000, 0x3c003c00, 1, 0x3c000000},
    {"set.leu.and.u32.bf16x2 %d, %a, %b, %q;", 0x7fc03f80, 0x3f803f80, 1, 0xffffffff},
    {"set.eq.or.ftz.f32.f32 %d, %a, %b, %q;", 1, 0x80000002, 2, 0x3f800000},
    {"mov.b64 %rd1, {%a, %b}; mad.hi.cc.s64 %rd2, %rd1, %rd1, -1; addc.u32 %d, 0, 0;", 0, 0x80000000, 0, 1},
    {"mad.hi.cc.s32 %r1, %a, %b, %c; addc.u32 %d, %r1, 0;", 0xffffffff, 5, 1, 1},
};

class Video : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Drawn, Video, testing::ValuesIn(drawn));
INSTANTIATE_TEST_SUITE_P(Chosen, Video, testing::ValuesIn(chosen));

TEST_P(Video, GivesTheWordOfTheIsa) {
  const Case& row = GetParam();
  const std::string body =
      ".reg .pred %q, %r; .reg .b32 %odd; and.b32 %odd, %c, 1; setp.eq.u32 %q, %odd, 1;\n" +
      std::string(row.body);
  EXPECT_EQ(first_word({.body = body, .a = {row.a}, .b = {row.b}, .c = {row.c}}), row.expected) << row.body;
}

std::string refusal(const char* body) {
  try {
    run_small({.body = body});
  } catch (const BadInput& error) {
    return error.what();
  }
  return "taken";
}

TEST(VideoText, PartsAndSignsAreThoseOfTheInstruction) {
  const std::pair<const char*, const char*> rows[] = {
      {"vadd.u32.u32.u32 %d, %a.b4, %b;", "has no part .b4"},
      {"vadd2.u32.u32.u32 %d, %a.h04, %b, %c;", "has no part .h04"},
      {"vadd4.u32.u32.u32 %d.b01, %a, %b, %c;", "has no part .b01"},
      {"vadd4.u32.u32.u32 %d, %a, %b;", "takes 4 operands, got 3"},
      {"vadd.u32.u32.u32 %d, -%a, %b;", "negates none of its operands"},
      {"vmad.u32.u32.u32 %d, -%a, %b, -%c;", "negates its product or its sum"},
      {"vmad.u32.u32.u32.po %d, -%a, %b, %c;", "with .po neither"},
      {"vmad.u32.u32.u32 %d.b0, %a, %b, %c;", "puts its result into no part"},
      {"add.u32 %d, %a.b0, %b;", "a part of a register, .b0, is no operand here"},
      {"add.u32 %d, -%a, %b;", "a negated operand is not allowed here"},
  };
  for (const auto& [body, message] : rows)
    EXPECT_NE(refusal(body).find(message), std::string::npos) << body << ": " << refusal(body);
}

}  // namespace video_test
}  // namespace assay::vm
