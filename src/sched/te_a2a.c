/*
 * TransformerEngine's cp_comm_type "a2a": Ulysses on zigzag halves. The all-to-alls of several
 * tensors are a pipeline: while one is sent, the next is laid out on the compute stream, and what
 * has arrived is brought into the order of tokens on a stream of its own (cp_stream). k and v are
 * one tensor here. Not modelled: fp8.
 */
#include "sched/common/heads.h"

#include <inttypes.h>

static bool
legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups % ranks == 0;
}

static LhHeads
heads_of(const LhProgramParams *p)
{
    LhHeads heads = {
        .cut = { p->ranks, p->ranks, p->ranks },
        .move = lh_heads_move_pipelined,
        .two_stages = true,
    };

    if (p->attention.linear)
        heads.o = LH_HEADS_O_UNUSED;
    else if (lh_pass_published(p))
        heads.o = LH_HEADS_O_GATHERED;
    return heads;
}

static void
adapt(LhProgramParams *p)
{
    if (lh_heads_padded(p))
        lh_heads_pad(&p->attention, p->ranks, false);
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
                             "%" PRIu32 " heads in %" PRIu32 " groups are not divisible by %" PRIu32
                             " ranks, and it has heads and groups divided evenly; nearest legal "
                             "numbers of ranks: %s",
                             a->heads, a->groups, p->ranks, nearest);
}

static void
declare(LhProgram *program)
{
    const LhHeads heads = heads_of(&program->params);

    lh_heads_declare_whole(program, &heads);
    lh_program_add_stream(program, "cp", LH_STREAM_COMPUTE);
}

LH_HEADS_WHOLE_FORMS(heads_of)

const LhSchedule lh_schedule_te_a2a = {
    .name = "te-a2a",
    .summary = "TransformerEngine's a2a: Ulysses on zigzag halves, all-to-alls in a pipeline",
    .details =
        "Context parallelism \"a2a\" of TransformerEngine (AttnFuncWithCPAndQKVOA2A in\n"
        "context_parallel.py). Tokens are placed in zigzag halves, as for its other\n"
        "modes; all-to-alls give every rank all tokens of its heads, as Ulysses. A\n"
        "tensor is laid out for sending (compute stream), sent (comm), and brought into\n"
        "the order of tokens (stream cp), and the next one follows a stage behind: while\n"
        "k, v are sent, q is put in order. Attention waits for all of it.\n"
        "\n"
        "bytes sent   fwd (2 Q + KV) (P-1)/P; bwd (Q + dQ + G) (P-1)/P. The public code\n"
        "             saves o by tokens and sends it again with do: (2 Q + dQ + G)\n"
        "             (P-1)/P with --published-code\n"
        "flops        P F / 2 on every rank, causal: N (N+1)/2 pairs of h/P heads\n"
        "idle         0\n"
        "buffers      as ulysses, and what has arrived is held a second time until it\n"
        "             is in order: fwd q, k, v, o, lse by heads and 3 (Q + KV) in all\n"
        "             while q, k, v arrive\n"
        "linear       as ulysses; o is neither kept by heads nor sent again\n"
        "restrictions sequence length divisible by 2P; heads and groups divisible by P\n"
        "             (--pad-heads rounds them up)\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_pad_heads),
    .placement = LH_PLACE_ZIGZAG,
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
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
