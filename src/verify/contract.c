/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs and outputs a program must have. They are fixed by its pass, not by the program:
 * otherwise a program that declares the results as its inputs, or none of them as outputs, would be
 * proven.
 */
#include "verify/verify_private.h"

typedef enum {
    IN,
    OUT,
    SAVED_IN,  /* by heads, as left by an earlier forward pass */
    SAVED_OUT, /* by heads, for a later backward pass */
    USES
} Use;

static const char *const use_names[] = {
    [IN] = "input",
    [OUT] = "output",
    [SAVED_IN] = "input that is saved by heads",
    [SAVED_OUT] = "output that is saved by heads",
};

/* The allowed number of slots of one kind in one use. */
typedef struct {
    uint32_t least, most;
} Range;

#define CONTRACT(...)                                                                              \
    (lh_proof_find(proof, LH_FINDING_MALFORMED, (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE }, \
                   __VA_ARGS__),                                                                   \
     false)

static Use
use_of(const LhSlot *slot)
{
    const bool input = slot->role == LH_SLOT_INPUT;

    if (slot->by_heads)
        return input ? SAVED_IN : SAVED_OUT;
    return input ? IN : OUT;
}

/* Whether the forward pass saves @kind for the backward pass, besides q, k and v. */
static bool
is_saved(const LhProgramParams *p, LhTensorKind kind)
{
    return kind == LH_TENSOR_O ||
           (p->attention.linear ? kind == LH_TENSOR_STATE : kind == LH_TENSOR_LSE);
}

static Range
input_range(const LhProgramParams *p, LhTensorKind kind)
{
    const bool alone = p->pass == LH_PASS_BWD;

    if (kind == LH_TENSOR_DO)
        return p->pass == LH_PASS_FWD ? (Range){ 0, 0 } : (Range){ 1, 1 };
    return is_saved(p, kind) && alone ? (Range){ 0, 1 } : (Range){ 0, 0 };
}

static Range
output_range(const LhProgramParams *p, LhTensorKind kind)
{
    const bool forward = (p->pass & LH_PASS_FWD) != 0, backward = (p->pass & LH_PASS_BWD) != 0;

    if (kind == LH_TENSOR_O)
        return forward ? (Range){ 1, 1 } : (Range){ 0, 0 };
    if (kind == LH_TENSOR_LSE)
        return forward && !p->attention.linear ? (Range){ 0, 1 } : (Range){ 0, 0 };
    if (kind == LH_TENSOR_STATE)
        return forward && p->attention.linear ? (Range){ 0, 1 } : (Range){ 0, 0 };
    if (kind == LH_TENSOR_DQ || kind == LH_TENSOR_DKV)
        return backward ? (Range){ 1, 1 } : (Range){ 0, 0 };
    return (Range){ 0, 0 };
}

static Range
range_of(const LhProgramParams *p, LhTensorKind kind, Use use)
{
    const bool saved = kind == LH_TENSOR_Q || kind == LH_TENSOR_KV || is_saved(p, kind);

    switch (use) {
    case IN:
        return input_range(p, kind);
    case OUT:
        return output_range(p, kind);
    case SAVED_IN:
        return saved && p->pass == LH_PASS_BWD ? (Range){ 0, 1 } : (Range){ 0, 0 };
    case SAVED_OUT:
    default:
        return saved && (p->pass == LH_PASS_BOTH || (p->pass == LH_PASS_FWD && p->keep_saved))
                   ? (Range){ 0, 1 }
                   : (Range){ 0, 0 };
    }
}

static bool
check_use(LhProof *proof, uint32_t (*counts)[USES], LhTensorKind kind, Use use)
{
    const LhProgramParams *p = &proof->program->params;
    const uint32_t count = counts[kind][use];
    Range range = range_of(p, kind, use);

    /* Queries, keys and values exist once, in either layout. */
    if (use == IN && (kind == LH_TENSOR_Q || kind == LH_TENSOR_KV))
        range.least = range.most = counts[kind][SAVED_IN] > 0 ? 0 : 1;
    if (count < range.least)
        return CONTRACT("has no %s slot of kind %s, which a %s pass of %s attention needs",
                        use_names[use], lh_tensor_names[kind], lh_pass_names[p->pass - 1],
                        p->attention.linear ? "linear" : "softmax");
    if (count > range.most && range.most == 0)
        return CONTRACT(
            "has a slot of kind %s as its %s, which does not exist in the %s pass of %s attention",
            lh_tensor_names[kind], use_names[use], lh_pass_names[p->pass - 1],
            p->attention.linear ? "linear" : "softmax");
    if (count > range.most)
        return CONTRACT("has %u slots of kind %s as its %s; allowed: 1", count,
                        lh_tensor_names[kind], use_names[use]);
    return true;
}

bool
lh_proof_check_contract(LhProof *proof)
{
    const LhProgram *program = proof->program;
    uint32_t counts[LH_TENSOR_KINDS][USES] = { 0 };
    uint32_t attention = 0, outputs = 0;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->role == LH_SLOT_TEMP)
            continue;
        counts[slot->kind][use_of(slot)]++;
        attention += lh_tensor_is_outside(slot->kind) ? 0 : 1;
        outputs += slot->role == LH_SLOT_OUTPUT || slot->role == LH_SLOT_STATE ? 1 : 0;
    }
    if (outputs == 0)
        return CONTRACT("has no output, so there is nothing to prove");
    /* What a step leaves is proven with the step. */
    proof->verdict->attends = attention > 0 && program->step == NULL;
    if (!proof->verdict->attends)
        return true;
    for (int kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        for (int use = 0; !lh_tensor_is_outside((LhTensorKind)kind) && use < USES; use++) {
            if (!check_use(proof, counts, (LhTensorKind)kind, (Use)use))
                return false;
        }
    }
    return true;
}
