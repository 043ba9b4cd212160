/*
 * DeepSpeed-Ulysses: all ranks exchange heads for tokens, and each computes attention of the whole
 * sequence for its heads. Nothing overlaps the all-to-alls. Key-value heads are replicated as in
 * ulysses_sp.py when there are fewer of them than ranks, and dealt out unevenly when they do not
 * divide. Not modelled: the streams on which DeepSpeed overlaps projections.
 */
#include "sched/common/heads.h"

#include <inttypes.h>

static LhHeads
heads_of(const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;
    LhHeads heads = {
        .cut = { p->ranks, p->ranks, p->ranks },
        .move = lh_heads_move_one_by_one,
        .o = p->attention.linear ? LH_HEADS_O_UNUSED : LH_HEADS_O_KEPT,
    };

    if (a->groups < p->ranks)
        heads.cut.kv_slices = a->groups;
    else if (a->groups % p->ranks != 0)
        heads.cut.slices = heads.cut.kv_slices = a->groups;
    return heads;
}

static void
adapt(LhProgramParams *p)
{
    if (lh_heads_padded(p))
        lh_heads_pad(&p->attention, p->ranks, true);
}

/* Every rank has key-value heads of its own, or every one of them has equally many ranks. */
static bool
legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups >= ranks || (ranks % a->groups == 0 && a->heads % ranks == 0);
}

static bool
check(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    g_autofree char *nearest = NULL;

    if (legal(a, p->ranks))
        return true;
    nearest = lh_heads_nearest_ranks(a, p->ranks, legal);
    return lh_program_refuse(error,
                             "%" PRIu32 " ranks for %" PRIu32 " heads in %" PRIu32
                             " groups: a rank needs a key-value head of its own, or a share of "
                             "the query heads of one that divides evenly (ranks divisible by "
                             "groups, heads by ranks); nearest legal numbers of ranks: %s",
                             p->ranks, a->heads, a->groups, nearest);
}

static void
declare(LhProgram *program)
{
    const LhHeads heads = heads_of(&program->params);

    lh_heads_declare_whole(program, &heads);
}

LH_HEADS_WHOLE_FORMS(heads_of)

/* The ranks with one slice more than others set the pace. */
static double
idle(const LhProgramParams *p)
{
    const LhHeads heads = heads_of(p);
    const double most = lh_slices_share(heads.cut.slices, p->ranks);

    return 1 - heads.cut.slices / (p->ranks * most);
}

const LhSchedule lh_schedule_ulysses = {
    .name = "ulysses",
    .summary = "all-to-all of heads against tokens, before and after local attention",
    .details =
        "DeepSpeed-Ulysses (arXiv:2309.14509; deepspeed/sequence/layer.py). An\n"
        "all-to-all each of q and of k, v gives rank r slice r of the heads for all N\n"
        "tokens; it computes attention alone; another all-to-all gives o back by\n"
        "tokens. Backward sends do the same way and dq, dk, dv back: q, k, v, o and lse\n"
        "stay by heads where forward has left them, and backward alone is given them so.\n"
        "Each tensor is copied once into the layout that is sent, or from it.\n"
        "\n"
        "bytes sent   fwd (2 Q + KV) (P-1)/P; bwd (Q + dQ + G) (P-1)/P, which is the\n"
        "             same, gradients travelling as activations unless told otherwise\n"
        "flops        P F / 2 on every rank, causal: N (N+1)/2 pairs of h/P heads\n"
        "idle         0\n"
        "buffers      fwd q, k, v, o, lse by heads, and 2 (Q + KV) while they arrive;\n"
        "             bwd do, dq, dk, dv on top of what is saved\n"
        "GQA          groups divisible by P: as above. P divisible by groups: k, v are\n"
        "             replicated P/g times and all replicas are sent (KV becomes KV P/g,\n"
        "             as in ulysses_sp.py); dk, dv of replicas are added up in fp32 by\n"
        "             their owner\n"
        "uneven       more groups than ranks, not divisible: a rank has c = ceil(g/P) or\n"
        "             one less of the key-value heads with their query heads, computed\n"
        "             one after the other; messages instead of an all-to-all. Rank with s\n"
        "             of them: fwd ((Q + KV) (g-s) + Q s (P-1)) / g sent, s/g P^2 F / 2\n"
        "             flops; idle 1 - g / (P c). --pad-heads rounds heads up instead\n"
        "linear       linear attention is one block of N tokens, in tiles: the flops of\n"
        "             lasp with P = 1, for h/P heads; no lse, and no o by heads for bwd\n"
        "restrictions sequence length divisible by P; g >= P, or P divisible by g and h\n"
        "             by P. The paper's bound is P <= h, with volume 4 N h d / P for MHA\n"
        "             (elements, forward; without the part that stays, 1/P)\n",
    .options = LH_OPTIONS(&lh_option_gradient_wire, &lh_option_pad_heads),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_ALL,
    .masks = LH_MASKS_ALL,
    .adapt = adapt,
    .check = check,
    .declare = declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = bytes_sent,
        .flops = flops,
        .peak_bytes = peak_bytes,
        .idle_unit = idle,
        .idle_flops = idle,
    },
};
