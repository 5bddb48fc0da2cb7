#include "src/base/vm/availability.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::vm {
namespace {

struct Rule {
  int least;
  const char* pattern;  ///< alternatives in braces; * stands for any text
};

#define WORDS "{b32,u32,s32,f32}"
#define WIDE "{b64,u64,s64,f64}"
#define SATURATED(to, from) \
  { 0, "cvt.sat." to "." from }

/// The first rule that matches holds; without one a form is as old as sm_80. From PTX ISA 9.0, the notes on
/// types and targets of each instruction; tests/data/ptxas_forms.txt has what ptxas says.
constexpr Rule rules[] = {
    // .sat is for what can overflow.
    SATURATED("u8", "u8"),
    SATURATED("s8", "s8"),
    SATURATED("u16", "{u8,u16}"),
    SATURATED("s16", "{u8,s8,s16}"),
    SATURATED("u32", "{u8,u16,u32}"),
    SATURATED("s32", "{u8,s8,u16,s16,s32}"),
    SATURATED("u64", "{u8,u16,u32,u64}"),
    SATURATED("s64", "{u8,s8,u16,s16,u32,s32,s64}"),
    {0, "cvt.{rni,rzi,rmi,rpi}.sat.*.bf16"},
    {0, "cvt.{rni,rzi,rmi,rpi}.{u8,s8}.bf16"},
    {0, "cvt.{rn,rz,rm,rp}.bf16.{u8,s8}"},
    {0, "mov.{f16,bf16,f16x2,bf16x2}"},
    {0, "{fma,mad}{,.ftz,.sat,.ftz.sat}.f32"},  // a rounding is required
    {0, "{setp,set}.{lo,ls,hi,hs}*.{s16,s32,s64}"},
    {0, "{atom,red}{,.global,.shared}.add.s64"},
    {0, "red{,.global,.shared}.{exch,cas}.*"},
    {0, "{atom,red}{,.global,.shared}.{and,or,xor,exch,cas}.{u32,s32,f32,u64,s64,f64}"},
    {0, "ldu.{shared,const,local,param}*"},
    {0, "ldu*.v8.*"},
    {0, "ldu*.v4." WIDE},
    {0, "{ld,st}*.v8." WIDE},
    {0, "cvta*.b64"},
    {0, "shfl.{up,down,bfly,idx}.b32"},  // without .sync: not since sm_70
    {100, "{ld,st}*.v4." WIDE},
    {100, "{ld,st}*.v8." WORDS},
    {90, "{add,sub,mul}{,.rn}.{bf16,bf16x2}"},
    {90, "{atom,red}*.add.{bf16,bf16x2}"},
    {90, "{atom,red}*.v{2,4,8}.*"},
    {90, "atom*.b128"},
    {90, "{set,setp}.*.{bf16,bf16x2}"},
    {90, "{ex2,tanh}.approx*.{bf16,bf16x2}"},
    {90, "cvt.{rni,rzi,rmi,rpi}.{u16,s16,u32,s32,u64,s64,bf16}.bf16"},
    {90, "cvt.{rn,rz,rm,rp}.bf16.{u16,s16,u32,s32,u64,s64}"},
    {90, "cvt.{rn.bf16.f64,ftz.f32.bf16,f64.bf16}"},
    {90, "cvt.{rn,rz}{,.relu}.tf32.f32"},
    {90, "{min,max}.relu.s32"},
    {90, "wgmma*"},
    {90, "stmatrix*"},
    {90, "mbarrier.{expect_tx,complete_tx,try_wait}*"},
    {90, "mbarrier.{arrive,arrive_drop}.expect_tx*"},
    {90, "fence.mbarrier_init"},
    {90, "setmaxnreg*"},
    {90, "griddepcontrol*"},
    {90, "fence.proxy.async*"},
    {90, "elect.sync"},
    {90, "barrier.cluster*"},
    {90, "{mapa,getctarank}*"},
    {90, "isspacep.shared::cluster"},
    {90, "{cp.async.bulk,cp.reduce.async.bulk}*"},
    {90, "prefetch*.tensormap"},
    {0, "st.async*.v4.{b64,u64,s64,f64}"},
    {90, "st.async*"},
    {90, "red.async*"},
    {90, "{tensormap,fence.proxy.tensormap}*"},
    {90, "mma.*.{m16n8k4,m16n8k8,m16n8k16}.row.col.f64*"},
    {89, "cvt.*{e4m3x2,e5m2x2}*"},
    {89, "mma.*{e4m3,e5m2}*"},
};
#undef SATURATED
#undef WIDE
#undef WORDS

bool matches(std::string_view pattern, std::string_view form) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == form;
  if (form.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view behind = pattern.substr(star + 1);
  if (behind.find('*') == std::string_view::npos) return form.substr(star).ends_with(behind);
  for (size_t rest = star; rest <= form.size(); ++rest)
    if (matches(behind, form.substr(rest))) return true;
  return false;
}

/// Patterns without braces and their architectures in the order of the rules, by the first part of the opcode
/// ("wgmma*" stands under "wgmma").
using Expanded = std::map<std::string, std::vector<std::pair<std::string, int>>, std::less<>>;

const Expanded& expanded() {
  static const Expanded made = [] {
    Expanded result;
    for (const Rule& rule : rules)
      for (std::string& pattern : alternatives(rule.pattern)) {
        const std::string base = pattern.substr(0, pattern.find_first_of(".*"));
        result[base].emplace_back(std::move(pattern), rule.least);
      }
    return result;
  }();
  return made;
}

}  // namespace

int least_architecture(std::string_view form) {
  const auto found = expanded().find(form.substr(0, form.find('.')));
  if (found == expanded().end()) return 80;
  for (const auto& [pattern, least] : found->second)
    if (matches(pattern, form)) return least;
  return 80;
}

}  // namespace assay::vm
