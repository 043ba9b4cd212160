/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common part of the schedules of linear attention: slots, the ops of one slice of the heads, and
 * their flops. Rank r holds tokens [r n, (r+1) n). The state before them is the sum over all
 * earlier tokens, decayed to token r n; the gradient of the state after them is the sum over all
 * later tokens.
 */
#pragma once

#include "sched/common/pass.h"

extern const LhOption lh_option_state_recompute;
extern const LhOption lh_option_unfused;

static inline bool
lh_linear_recomputes(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_state_recompute) != 0;
}

static inline bool
lh_linear_unfused(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_unfused) != 0;
}

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint64_t state; /* M = 4 B h d^2: bytes of the states of all heads, in fp32 */
    uint32_t ranks, slices;
    bool unfused;
    LhKernelArgs block, q_rows, kv_rows; /* arguments for one slice */
    uint16_t before; /* the state before the rank's tokens, left by the forward pass */
    uint16_t o_apart, dq_apart, dkv_apart; /* with --unfused: contributions through states */
} LhLinearPass;

uint64_t lh_linear_state_bytes(const LhProgramParams *p);

/* Rejects 16-bit states on the wire. */
bool lh_linear_check(const LhProgramParams *p, GError **error);

/* Declares streams, inputs, outputs and, unless the backward pass recomputes it, `before`, with
 * heads split into @slices. Returns the common part of a plan. */
LhLinearPass lh_linear_declare(LhProgram *program, uint32_t slices);

/* Declares a temporary slot for @states states of all heads (M bytes each), with one part per
 * slice of each state. */
uint16_t lh_linear_add_state(LhProgram *program, const LhLinearPass *l, const char *name,
                             LhTensorKind kind, uint32_t states);

/* Declare the slots that --unfused needs; no effect without it. */
void lh_linear_add_forward_apart(LhProgram *program, LhLinearPass *l);
void lh_linear_add_backward_apart(LhProgram *program, LhLinearPass *l);

/* Buffers of a schedule that passes states from rank to rank; those of a pass are consecutive
 * slots. */
typedef struct {
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_out, bwd_in, bwd_out;
    uint16_t again_in, again_out; /* with --state-recompute: the forward chain, run again */
} LhLinearChain;

/* Tags of the messages of the chains. */
enum {
    LH_LINEAR_TAG_STATE,
    LH_LINEAR_TAG_DSTATE,
};

/* Declares the buffers of the passes that run, including those of --unfused. */
LhLinearChain lh_linear_declare_chain(LhProgram *program, LhLinearPass *l);

/* Bytes of inputs, outputs and `before` on a rank; bytes that --unfused adds to a pass. */
uint64_t lh_linear_io_bytes(const LhProgramParams *p);
uint64_t lh_linear_apart_bytes(const LhProgramParams *p, LhPass pass);

/* ---- ops of slice @slice, on the compute stream ---- */

/* intra: o = attention among the rank's tokens. inter: o += attention to earlier tokens through
 * their state. */
void lh_linear_intra(LhEmitter *e, const LhLinearPass *l, uint32_t slice);
void lh_linear_inter(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before);

/* state = the state after the rank's tokens, from these tokens alone. */
void lh_linear_own_state(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t state);

/* dq and dkv of intra; dq += gradients through the state before; dkv += gradients through the
 * state after. */
void lh_linear_intra_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice);
void lh_linear_inter_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before);
void lh_linear_state_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t behind);

/* dstate = the gradient of the state before the rank's tokens, from these tokens alone. */
void lh_linear_own_dstate(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t dstate);

/* Decays a state (or a gradient) over the rank's tokens and adds it to @to. */
void lh_linear_carry(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t from,
                     uint16_t to);

/* Arguments with the rows over which states in @slot are decayed. */
const LhKernelArgs *lh_linear_carry_args(const LhEmitter *e, const LhLinearPass *l, uint16_t slot);

/* ---- closed forms ---- */

/* Flops of one rank's tokens in a pass, all heads. */
typedef struct {
    uint64_t intra; /* attention among the rank's tokens */
    uint64_t inter; /* o or dq through the state before */
    uint64_t grad;  /* backward: dk, dv through the state after */
    uint64_t own;   /* the rank's own state, or its gradient */
    uint64_t carry; /* decay of a state over the tokens, and addition */
} LhLinearWork;

LhLinearWork lh_linear_work(const LhProgramParams *p, LhPhase phase);

/* Flops of a schedule whose states form a chain, in the passes that run. */
uint64_t lh_linear_chain_flops(const LhProgramParams *p, uint32_t rank);

/* Bytes a chain sends: forward M to the next rank, backward M to the previous one. */
uint64_t lh_linear_chain_bytes(const LhProgramParams *p, uint32_t rank);

/* Peak memory of such a schedule. */
uint64_t lh_linear_chain_peak_bytes(const LhProgramParams *p, uint32_t rank);
