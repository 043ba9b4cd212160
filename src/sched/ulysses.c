/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule ulysses, described at the end of this file: the exchange of heads for tokens over
 * all ranks, with the splits that only Ulysses has, namely replicated key-value heads (kv_slices <
 * P) and uneven heads (slices not a multiple of P). Not modelled: the streams on which DeepSpeed
 * overlaps the projections.
 */
#include "sched/common/heads.h"
#include "sched/common/heads_forms.h"
#include "sched/common/heads_moves.h"
#include "sched/schedule.h"

#include <inttypes.h>

static LhHeads
ulysses_heads(const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;
    LhHeads heads = {
        .cut = { p->ranks, p->ranks, p->ranks },
        .move = lh_heads_move_one_by_one,
        .o = p->attention.linear ? LH_HEADS_O_UNUSED : LH_HEADS_O_KEPT,
        .apart = lh_pass_published(p),
    };

    if (a->groups < p->ranks)
        heads.cut.kv_slices = a->groups;
    else if (a->groups % p->ranks != 0)
        heads.cut.slices = heads.cut.kv_slices = a->groups;
    return heads;
}

static void
ulysses_adapt(LhProgramParams *p)
{
    if (lh_heads_padded(p))
        lh_heads_pad(&p->attention, p->ranks, true);
}

/* Either every rank has a key-value head of its own, or every key-value head has the same number
 * of ranks. */
static bool
ulysses_legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups >= ranks || (ranks % a->groups == 0 && a->heads % ranks == 0);
}

static bool
ulysses_check(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    g_autofree char *nearest = NULL;

    if (ulysses_legal(a, p->ranks))
        return true;
    nearest = lh_heads_nearest_ranks(a, p->ranks, ulysses_legal);
    return lh_program_refuse(error,
                             "%" PRIu32 " ranks for %" PRIu32 " heads in %" PRIu32
                             " groups: each rank needs a key-value head of its own, or an equal "
                             "share of the query heads of one (ranks divisible by groups, heads by "
                             "ranks); nearest legal numbers of ranks: %s",
                             p->ranks, a->heads, a->groups, nearest);
}

static void
ulysses_declare(LhProgram *program)
{
    const LhHeads heads = ulysses_heads(&program->params);

    lh_heads_declare_whole(program, &heads);
}

LH_HEADS_WHOLE_FORMS(ulysses, ulysses_heads)

/* Ranks with one more slice than the others take the longest. */
static double
ulysses_idle(const LhProgramParams *p)
{
    const LhHeads heads = ulysses_heads(p);
    const double most = lh_slices_share(heads.cut.slices, p->ranks);

    return 1 - heads.cut.slices / (p->ranks * most);
}

const LhSchedule lh_schedule_ulysses = {
    .name = "ulysses",
    .summary = "all-to-alls that exchange tokens for heads, before and after local attention",
    .details =
        "DeepSpeed-Ulysses (arXiv:2309.14509; deepspeed/sequence/layer.py). An all-to-all\n"
        "of q and one of k, v give each rank all N tokens of its h/P heads; the rank\n"
        "computes their attention alone; another all-to-all returns o to the owners of\n"
        "the tokens. The backward pass sends do in the same way, and dq, dk, dv back.\n"
        "Between the passes q, k, v, o and lse stay by heads: all tokens of the rank's\n"
        "heads; a backward pass alone takes them in this layout. Each tensor is copied\n"
        "once between its layout in memory and the one that is sent. No communication\n"
        "overlaps with compute.\n"
        "\n"
        "bytes sent   forward (2Q + KV) (P-1)/P; backward (Q + dQ + G) (P-1)/P, where dQ\n"
        "             is dq as it travels: the same bytes, unless --gradient-wire is\n"
        "             given\n"
        "flops        causal: P F / 2 on every rank, N (N+1)/2 pairs of h/P heads\n"
        "idle         0\n"
        "buffers      forward q, k, v, o, lse by heads, and 2 (Q + KV) while q, k, v\n"
        "             arrive; backward also do, dq, dk, dv by heads\n"
        "few groups   If g < P and P is a multiple of g, k and v are replicated P/g times\n"
        "             before they are sent, as in ulysses_sp.py: KV and G become P/g times\n"
        "             as large. The owner of the tokens adds up dk, dv of the replicas in\n"
        "             fp32\n"
        "uneven heads If g > P is not a multiple of P, a rank has c = ceil(g/P) key-value\n"
        "             heads or one less, with their query heads, and computes them one\n"
        "             after the other. Messages between all pairs of ranks replace the\n"
        "             all-to-alls. A rank with s key-value heads sends forward\n"
        "             [(Q + KV) (g-s) + Q s (P-1)] / g and backward\n"
        "             [Q (g-s) + (dQ + G) s (P-1)] / g, and computes s/g of all flops.\n"
        "             Idle is 1 - g/(P c). --pad-heads rounds heads up instead\n"
        "linear       Linear attention of all N tokens of h/P heads, with the flops of\n"
        "             lasp for P = 1; there is no lse, and the backward pass needs no o\n"
        "restrictions N divisible by P; g >= P, or P divisible by g and h by P\n"
        "published    With --published-code k and v each travel in an all-to-all of their\n"
        "             own, one after the other, and so do dk and dv: as DistributedAttention\n"
        "             calls _SeqAllToAll. Otherwise one call takes both\n",
    .options = LH_OPTIONS(&lh_option_published_code, &lh_option_gradient_wire,
                          &lh_option_pad_heads),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_ALL,
    .masks = LH_MASKS_ALL,
    .adapt = ulysses_adapt,
    .check = ulysses_check,
    .declare = ulysses_declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = ulysses_bytes_sent,
        .flops = ulysses_flops,
        .peak_bytes = ulysses_peak_bytes,
        .idle_unit = ulysses_idle,
        .idle_flops = ulysses_idle,
    },
};
