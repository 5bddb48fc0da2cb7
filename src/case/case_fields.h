// The fields of a case as documents list them.
#pragma once
#include "src/base/fields/fields.h"
#include "src/case/case.h"
#include "src/case/parameters.h"

namespace assay {

template <typename Io>
void fields(Io& io, Case& x) {
  io.type("case");
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(B);
  ASSAY_FIELD(T);
  ASSAY_FIELD(H);
  ASSAY_FIELD(HV);
  ASSAY_FIELD(K);
  ASSAY_FIELD(V);
  ASSAY_FIELD(M);
  ASSAY_FIELD(cu_seqlens);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(gate_dtype);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(values);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(scale);
  ASSAY_FIELD(direction);
  ASSAY_FIELD(without);
  ASSAY_FIELD(initial_state);
  ASSAY_FIELD(final_state_gradient);
  ASSAY_FIELD(overrides);
  io.or_null("blocks", x.blocks, "blocks of each launch that ran; null: all");
  io.or_null("layout", x.layout,
             "how inputs lie in memory, as in heads-first or q=padded,k=4096:64:64:1; null: row by row");
  std::string parameters = parameters_text(x.parameters);
  io.or_null("parameters", parameters,
             "numbers of the operator, as in layer_idx=3,num_layers=12; null: all have their default");
  x.parameters = parse_parameters(parameters);
  ASSAY_LATER(rates, "the largest rate of a delta rule that is drawn");
}

}  // namespace assay
