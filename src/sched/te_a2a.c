/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule te-a2a, described at the end of this file. Everything but the options of the
 * exchange is in common/heads.h. Not modelled: fp8.
 */
#include "sched/common/heads.h"
#include "sched/common/heads_forms.h"
#include "sched/common/heads_moves.h"
#include "sched/schedule.h"

#include <inttypes.h>

static bool
te_a2a_legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups % ranks == 0;
}

static LhHeads
te_a2a_heads(const LhProgramParams *p)
{
    LhHeads heads = {
        .cut = { p->ranks, p->ranks, p->ranks },
        .move = lh_heads_move_pipelined,
        .two_stages = true,
        .apart = lh_pass_published(p),
    };

    if (p->attention.linear)
        heads.o = LH_HEADS_O_UNUSED;
    else if (lh_heads_te_version(p) == LH_TE_2_7)
        heads.o = LH_HEADS_O_GATHERED;
    return heads;
}

static void
te_a2a_adapt(LhProgramParams *p)
{
    if (lh_heads_padded(p))
        lh_heads_pad(&p->attention, p->ranks, false);
}

static bool
te_a2a_check(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    g_autofree char *nearest = NULL;

    if (te_a2a_legal(a, p->ranks))
        return true;
    nearest = lh_heads_nearest_ranks(a, p->ranks, te_a2a_legal);
    return lh_program_refuse(
        error,
        "%" PRIu32 " heads in %" PRIu32 " groups are not divisible by %" PRIu32
        " ranks, and it needs heads and groups divided evenly; nearest legal numbers of ranks: %s",
        a->heads, a->groups, p->ranks, nearest);
}

static void
te_a2a_declare(LhProgram *program)
{
    const LhHeads heads = te_a2a_heads(&program->params);

    lh_heads_declare_whole(program, &heads);
    lh_program_add_stream(program, "cp", LH_STREAM_COMPUTE);
}

LH_HEADS_WHOLE_FORMS(te_a2a, te_a2a_heads)

const LhSchedule lh_schedule_te_a2a = {
    .name = "te-a2a",
    .summary = "TransformerEngine a2a: Ulysses on zigzag halves, with pipelined all-to-alls",
    .details =
        "Context parallelism of TransformerEngine with cp_comm_type a2a\n"
        "(AttnFuncWithCPAndQKVOA2A in context_parallel.py): Ulysses on zigzag half-chunks,\n"
        "the placement of TransformerEngine's other modes. All-to-alls give every rank all\n"
        "tokens of its h/P heads. They are a pipeline of three stages: a tensor is laid\n"
        "out for sending on the compute stream, sent, and copied into the order of its\n"
        "tokens on a stream `cp`; the next tensor follows one stage behind. Attention\n"
        "waits for all of them.\n"
        "\n"
        "bytes sent   forward (2Q + KV) (P-1)/P; backward (Q + dQ + G) (P-1)/P, where dQ\n"
        "             is dq as it travels\n"
        "flops        causal: P F / 2 on every rank, N (N+1)/2 pairs of h/P heads\n"
        "idle         0\n"
        "buffers      as ulysses, but what arrives is held twice until it is in order:\n"
        "             while q, k, v arrive, forward holds them three times, 3 (Q + KV)\n"
        "linear       as ulysses; o is neither kept by heads nor sent again\n"
        "restrictions N divisible by 2P, h and g divisible by P (--pad-heads makes them so)\n"
        "versions     --te-version 2.15 (default) and 2.8 are the same here: since 2.8 (pull\n"
        "             request 2012) the forward pass saves o by heads. With --te-version 2.7\n"
        "             it saves o by tokens, as TransformerEngine up to 2.7 did, and the\n"
        "             backward pass sends it again along with do: Q (P-1)/P more\n"
        "published    With --published-code k and v each travel in an all-to-all of their\n"
        "             own, and so do dk and dv: as flash_attn_a2a_communicate sends its list\n"
        "             of tensors. k and v are still laid out, and put in order, together\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_pad_heads, &lh_option_te_version),
    .placement = LH_PLACE_ZIGZAG,
    .attention = LH_ATTENTION_ALL,
    .masks = LH_MASKS_ALL,
    .adapt = te_a2a_adapt,
    .check = te_a2a_check,
    .declare = te_a2a_declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = te_a2a_bytes_sent,
        .flops = te_a2a_flops,
        .peak_bytes = te_a2a_peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
