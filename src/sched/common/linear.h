/*
 * What the schedules of linear attention share: slots, the ops of one slice of a rank's tokens, and
 * the flops of each. Rank r holds tokens [r n, (r+1) n); the state before them is what all earlier
 * ranks leave, decayed to token r n, and its gradient behind them what all later ranks ask for.
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
    LhKernelArgs block, q_rows, kv_rows; /* of one slice */
    uint16_t before;                     /* the state before the rank's tokens; forward leaves it */
    uint16_t o_apart, dq_apart, dkv_apart; /* unfused: what goes through states */
} LhLinearPass;

uint64_t lh_linear_state_bytes(const LhProgramParams *p);

/* Refuses gradients in 16 bits on the wire. */
bool lh_linear_check(const LhProgramParams *p, GError **error);

/* Declares streams, inputs, outputs and, unless backward computes it again, `before`; heads are cut
 * into @slices. Returns the shared part, for the plan. */
LhLinearPass lh_linear_declare(LhProgram *program, uint32_t slices);

/* A temporary slot of @states times M, in as many parts times the slices. */
uint16_t lh_linear_add_state(LhProgram *program, const LhLinearPass *l, const char *name,
                             LhTensorKind kind, uint32_t states);

/* The slots that unfused passes need; nothing otherwise. */
void lh_linear_add_forward_apart(LhProgram *program, LhLinearPass *l);
void lh_linear_add_backward_apart(LhProgram *program, LhLinearPass *l);

/* The buffers of a schedule in which states pass from rank to rank, those of each pass together. */
typedef struct {
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_out, bwd_in, bwd_out;
    uint16_t again_in, again_out; /* state_recompute: the forward chain of the backward pass */
} LhLinearChain;

/* Declares them, of the passes that are run, and what unfused passes need. */
LhLinearChain lh_linear_declare_chain(LhProgram *program, LhLinearPass *l);

/* Bytes of inputs, outputs and `before` on a rank; of what unfused passes need besides. */
uint64_t lh_linear_io_bytes(const LhProgramParams *p);
uint64_t lh_linear_apart_bytes(const LhProgramParams *p, LhPass pass);

/* ---- ops of slice @slice, on the compute stream ---- */

/* o = attention among the rank's tokens; then o += that to earlier ones, through their state. */
void lh_linear_intra(LhEmitter *e, const LhLinearPass *l, uint32_t slice);
void lh_linear_inter(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before);

/* state = that of the rank's own tokens alone, behind them. */
void lh_linear_own_state(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t state);

/* dq and dkv of linear_intra; dq += through the state before; dkv += through the gradient behind.
 */
void lh_linear_intra_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice);
void lh_linear_inter_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before);
void lh_linear_state_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t behind);

/* dstate = the gradient, before the rank's tokens, that they alone ask for. */
void lh_linear_own_dstate(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t dstate);

/* Moves a state (or gradient) over the rank's tokens and adds it to @to. */
void lh_linear_carry(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t from,
                     uint16_t to);

/* Rows to carry the states in @slot over. */
const LhKernelArgs *lh_linear_carry_args(const LhEmitter *e, const LhLinearPass *l, uint16_t slot);

/* ---- closed forms ---- */

/* Flops of one rank's tokens, all heads, in a pass. */
typedef struct {
    uint64_t intra; /* among themselves */
    uint64_t inter; /* through the state before: o, or dq */
    uint64_t grad;  /* backward: dk, dv through the gradient behind */
    uint64_t own;   /* their own state, or gradient */
    uint64_t carry; /* of one state over them, and its addition */
} LhLinearWork;

LhLinearWork lh_linear_work(const LhProgramParams *p, LhPhase phase);

/* Flops of a chain over the ranks, in the passes that are run. */
uint64_t lh_linear_chain_flops(const LhProgramParams *p, uint32_t rank);

/* Bytes that a chain sends: M to the next rank forward, to the one before backward. */
uint64_t lh_linear_chain_bytes(const LhProgramParams *p, uint32_t rank);

/* Its buffers: forward the state that leaves a rank and, if it is not kept, the one that comes;
 * backward two gradients, and two states if they are computed again. */
uint64_t lh_linear_chain_peak_bytes(const LhProgramParams *p, uint32_t rank);
