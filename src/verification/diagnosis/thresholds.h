// Every number that decides how sure the diagnosis is, and how far it looks. Scores order causes and are
// printed as per cent; they are no probabilities, but the steps between them stand for kinds of evidence:
//
//   0.99  the fault itself was seen: a trap, a race, an address outside its tensor
//   0.98  a meaning makes every wrong element right (kEveryElement), times its row's prior, which puts the
//         more specific of two meanings that fit alike first
//   0.7   named: nothing further is looked for (kNamed)
//   0.5   explained at all (kExplained); 0.45 that the formula differs, but not how (kFormulaOnly): below
//         every name
//   0.3   worth saying (kWorthSaying)
//
// Bits count coincidence: a meaning whose prediction comes 2^n times nearer than the reference would do so by
// chance once in about 2^n tries, so bits of elements add up, and the number of meanings tried is subtracted
// as log2 (the look-elsewhere effect).
#pragma once
#include <cstdint>

namespace assay::thresholds {

// ---- how well a meaning fits ----

/// Bits that must be left after log2(meanings tried): 2^-6, one false name in 64 findings that no meaning
/// explains.
inline constexpr double kBitsNeeded = 6;
/// One element proves no more than this, however near: operands may be small integers, whose products have
/// few values. As it is twice kBitsNeeded, one element names a cause only among 2^6 variants; token by
/// token there are more.
inline constexpr double kMostBitsOfElement = 12;
/// No chance: 60 bits less log2 of a million variants leave 2^-40.
inline constexpr double kSurelyNoChance = 60;
/// Evidence below this is called little: log2 of the thousand variants that a case has, and kBitsNeeded,
/// leave 4 bits of it.
inline constexpr double kLittle = 20;
/// Where the bound is wider than the error, the bound says nothing; the prediction has to come 8 times
/// nearer than the reference to count as an explanation, and 1024 times (the last place of bf16 and fp16 is
/// coarser) to count as evidence.
inline constexpr double kNearer = 0x1p-3, kFarNearer = 0x1p-10;
/// An output is explained where so many of its wrong elements are: the others may be wrong for a rounding
/// that the meaning moves across a tie, at most one element in 50.
inline constexpr double kMostOfThem = 0.98;
/// Scores of a meaning that explains all wrong elements, kMostOfThem of them, and a share s of them (times
/// s^2).
inline constexpr double kEveryElement = 0.98, kMostElements = 0.9, kShareOfElements = 0.6;
/// Of a meaning that is an approximation by nature (a rounding), whose errors' root mean square falls 4
/// times, or 2.
inline constexpr double kFallsFourfold = 0.85, kFallsTwofold = 0.6;
/// Taken off in proportion to the right elements that would be wrong, and once where those lie in outputs
/// without a fault: less than the step from kEveryElement to kMostElements, since such an element may be
/// right by chance.
inline constexpr double kAgainst = 0.35, kAgainstElsewhere = 0.04;
/// Of the score where the meaning leaves wrong outputs open: below a whole explanation, above a partial one.
inline constexpr double kUnsaid = 0.95;
/// Of a meaning that holds in a block of channels or heads only, and how many such blocks there are to
/// choose.
inline constexpr double kLimited = 0.96, kBlocks = 64;
/// Each missing bit takes an eighth of the score away, down to a tenth of it.
inline constexpr double kPerMissingBit = 0.125, kLeastShare = 0.1;

// ---- what is said of the fits ----

inline constexpr double kWorthSaying = 0.3;
/// Less than kEveryElement by rounding alone: single tokens are then not tried one by one.
inline constexpr double kWholly = 0.97;
inline constexpr double kNamed = 0.7;
inline constexpr double kExplained = 0.5;
inline constexpr double kFormulaOnly = 0.45;
/// Of a meaning that leaves wrong values on real numbers open: below that the formula differs.
inline constexpr double kRefuted = 0.4;
/// Of its score, for what rests on no coincidence at all.
inline constexpr double kApartFromFormula = 0.95;
/// Of a fingerprint, which says what differs but not why: above every name that explains a part only.
inline constexpr double kFingerprint = 0.55;
/// Where it says that an input is read at another place along one axis: nothing is left open but the offset.
inline constexpr double kMisread = 0.9;
/// What was run beside it with an absent input given and is right: above every meaning that would explain it.
inline constexpr double kRightIfGiven = 0.985;
/// Of a rounding that few values show: below kNamed, and below the share of the errors that roundings make.
inline constexpr double kRoundingByLittle = 0.6;
/// Of a run that a property derived and whose formula is wrong: it says more than that two runs differ.
inline constexpr double kWrongItself = 0.58;
inline constexpr double kUnexplainedScore =
    0.1;  ///< of the entry that says where values are wrong, and no more
/// A meaning is decided by this case alone where it scores so high and the next one so much less: the
/// priors of rows that say the same thing more or less specifically lie 0.03 apart.
inline constexpr double kSure = 0.93, kApart = 0.03;
/// Weight of a further case beside the shrunk one: more, because values are random there and sizes larger;
/// and of its score where the shrunk case is silent.
inline constexpr double kFurther = 0.65, kFurtherAlone = 0.9;
/// A fit that leaves a positive exponent unexplained, and an overflow whose large factor is such an
/// exponential: below kNamed and not above kExplained, so that what explains the exponent comes first.
inline constexpr double kOfTheRest = 0.6, kOfTheProduct = 0.5;

// ---- how far it looks ----

/// Lane-instructions of runs that are repeated unasked, beside exact arithmetic and under the checks:
/// chosen so that a diagnosis is a matter of seconds, not derived.
inline constexpr uint64_t kShadowInstructions = 50'000'000;
inline constexpr uint64_t kCheckInstructions = 20'000'000;
/// Of runs that are repeated on real numbers: some passes each.
inline constexpr uint64_t kExactInstructions = 20'000'000;

}  // namespace assay::thresholds
