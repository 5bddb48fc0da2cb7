// Entries that the backward passes of both modes have: the gradients of both passes over the slots together.
// Included by each after its formats Element and Decay.
extern "C" __global__ void __launch_bounds__(128)
    gsa_add_slots(const float* a, const float* b, Element::Bits* to, i64 count) {
  add<Element>(a, b, to, count);
}
extern "C" __global__ void __launch_bounds__(128)
    gsa_add_gates(const float* a, const float* b, Decay::Bits* to, i64 count) {
  add<Decay>(a, b, to, count);
}
