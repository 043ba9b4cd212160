/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost and legality of exchanging heads; see heads.h. Nothing in this file reads a program.
 */
#include "sched/common/heads_forms.h"

#include "kernels/sizes.h"
#include "sched/common/ring_shared.h"
#include "sched/common/single.h"

uint32_t
lh_heads_own(const LhHeadsCut *cut, uint32_t rank)
{
    const uint32_t index = rank % cut->members;

    return cut->slices / cut->members + (index < cut->slices % cut->members ? 1 : 0);
}

LhPassSizes
lh_heads_sizes(const LhProgramParams *p, const LhHeads *heads)
{
    LhPassSizes z = lh_pass_sizes(p, 0);

    if (heads->grads_narrow) {
        z.w = z.e;
        z.dq = z.q;
        z.dkv = z.kv;
    }
    return z;
}

/* Bytes @rank sends to move a tensor of @bytes by tokens from one layout to the other. */
static uint64_t
sent(const LhHeadsCut *cut, uint32_t rank, uint64_t bytes, uint32_t slices, bool to_heads)
{
    const uint64_t cell = bytes / slices;

    if (!lh_heads_uneven(cut))
        return cell * MAX(slices, cut->members) / cut->members * (cut->members - 1);
    if (to_heads)
        return cell * (slices - lh_heads_own(cut, rank));
    return cell * lh_heads_own(cut, rank) * (cut->members - 1);
}

uint64_t
lh_heads_bytes_sent(const LhProgramParams *p, const LhHeads *heads, uint32_t rank)
{
    const LhHeadsCut *cut = &heads->cut;
    const LhPassSizes z = lh_heads_sizes(p, heads);
    uint64_t bytes = 0;

    if (cut->members == 1)
        return 0;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += sent(cut, rank, z.q, cut->slices, true) +
                 sent(cut, rank, z.kv, cut->kv_slices, true) +
                 sent(cut, rank, z.q, cut->slices, false);
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += lh_heads_gathered(heads) * sent(cut, rank, z.q, cut->slices, true) +
                 sent(cut, rank, z.dq, cut->slices, false) +
                 sent(cut, rank, z.dkv, cut->kv_slices, false);
    return bytes;
}

/* Bytes by heads, including staging buffers, of a tensor of @bytes by tokens. */
static uint64_t
by_heads(const LhHeadsCut *cut, uint64_t bytes, uint32_t slices)
{
    return cut->members == 1
               ? 0
               : bytes / slices * cut->members * lh_slices_share(slices, cut->members);
}

static uint64_t
staged(const LhHeads *heads, uint64_t bytes, uint32_t slices)
{
    const LhHeadsCut *cut = &heads->cut;

    if (cut->members == 1)
        return 0;
    return bytes / slices * MAX(slices, cut->members) * (heads->two_stages ? 2 : 1);
}

/* The largest of three phases: while q, k, v arrive (in slots that exist anyway if @kept), while
 * attention runs, and while o is returned. */
static uint64_t
forward_peak(const LhHeads *heads, const LhPassSizes *z, uint64_t held, bool kept,
             const LhHeadsBuffers *b)
{
    const LhHeadsCut *cut = &heads->cut;
    const uint64_t gathered =
        by_heads(cut, z->q, cut->slices) + by_heads(cut, z->kv, cut->kv_slices);
    const uint64_t in = (kept ? 0 : gathered) + staged(heads, z->q, cut->slices) +
                        staged(heads, z->kv, cut->kv_slices);

    return MAX(in, held + MAX(b->forward, b->kept + staged(heads, z->q, cut->slices)));
}

/* The largest of three phases: while do arrives, while attention runs, and while dq, dk, dv are
 * returned. */
static uint64_t
backward_peak(const LhHeads *heads, const LhPassSizes *z, uint64_t held, const LhHeadsBuffers *b)
{
    const LhHeadsCut *cut = &heads->cut;
    const uint64_t got = lh_heads_gathered(heads) * by_heads(cut, z->q, cut->slices);
    const uint64_t in = got + lh_heads_gathered(heads) * staged(heads, z->q, cut->slices);
    const uint64_t gradients =
        by_heads(cut, z->dq, cut->slices) + by_heads(cut, z->dkv, cut->kv_slices);
    const uint64_t sum = lh_heads_replicated(cut) ? z->kv / z->e * LH_FP32_BYTES : 0;
    const uint64_t out =
        gradients + staged(heads, z->dq, cut->slices) + staged(heads, z->dkv, cut->kv_slices) + sum;

    return MAX(held + MAX(b->kept + in, got + gradients + b->backward), out);
}

/* Tensors by tokens are inputs and outputs. Tensors that the forward pass saves by heads are
 * outputs with keep_saved; a backward pass alone takes them as inputs, in place of the tensors
 * by tokens. */
uint64_t
lh_heads_peak_bytes(const LhProgramParams *p, const LhHeads *heads, const LhHeadsBuffers *buffers)
{
    const LhHeadsCut *cut = &heads->cut;
    const LhPassSizes z = lh_heads_sizes(p, heads);
    const bool forward = lh_pass_has(p, LH_PASS_FWD), backward = lh_pass_has(p, LH_PASS_BWD);
    const uint64_t o = by_heads(cut, z.q, cut->slices);
    const uint64_t lse = cut->members == 1 ? z.s : by_heads(cut, z.s, cut->slices);
    const uint64_t all = 2 * o + by_heads(cut, z.kv, cut->kv_slices) + lse; /* q, k, v, o, lse */
    const uint64_t saved = all - (heads->o == LH_HEADS_O_KEPT ? 0 : o);
    const bool keeps = p->keep_saved && forward && !backward;
    LhHeadsBuffers b = { 0 };
    uint64_t there = 2 * z.q + z.kv, peak = 0;

    if (buffers != NULL)
        b = *buffers;
    if (!forward || !backward)
        b.kept = 0;
    if (keeps)
        there += saved;
    if (forward)
        peak = forward_peak(heads, &z, all - (keeps ? saved : 0), keeps, &b);
    else if (cut->members == 1)
        there += lse;
    else
        there = saved + (heads->o == LH_HEADS_O_KEPT ? 0 : z.q);
    if (backward)
        peak = MAX(peak, backward_peak(heads, &z, forward ? saved : 0, &b));
    return there + (backward ? 2 * z.q + z.kv : 0) + peak;
}

uint64_t
lh_heads_flops(const LhProgramParams *p, uint32_t heads)
{
    LhProgramParams alone = *p;

    alone.attention.heads = heads;
    alone.ranks = 1;
    return lh_single_closed.flops(&alone, 0);
}

uint64_t
lh_heads_whole_flops(const LhProgramParams *p, const LhHeads *heads, uint32_t rank)
{
    const LhHeadsCut *cut = &heads->cut;

    return lh_heads_flops(p, p->attention.heads / cut->slices * lh_heads_own(cut, rank));
}

uint64_t
lh_heads_ring_flops(const LhProgramParams *p, uint32_t rank)
{
    const uint32_t size = lh_heads_size(p);
    LhProgramParams ring = *p;

    ring.ranks = p->ranks / size;
    ring.attention.heads = p->attention.heads / size;
    return lh_zigzag_flops(&ring, rank / size);
}

/* ---- rules ---- */

static uint64_t
round_up(uint64_t x, uint64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

void
lh_heads_pad(LhAttention *a, uint32_t ranks, bool replicate)
{
    uint64_t groups = a->groups, share;

    if (ranks == 0 || groups == 0 || a->heads % groups != 0)
        return;
    share = a->heads / groups;
    if (replicate && share > 1 && groups < ranks && ranks % groups == 0)
        share = round_up(share, ranks / groups);
    else
        groups = round_up(groups, ranks);
    if (groups * share > UINT32_MAX || groups * share == a->heads)
        return;
    if (a->hidden_size == 0)
        a->hidden_size = a->heads * a->head_dim;
    a->groups = (uint32_t)groups;
    a->heads = (uint32_t)(groups * share);
}

char *
lh_heads_nearest_ranks(const LhAttention *a, uint32_t ranks,
                       bool (*legal)(const LhAttention *a, uint32_t ranks))
{
    uint32_t below = MIN(ranks - 1, a->heads), above = ranks + 1;

    while (below > 1 && !legal(a, below))
        below--;
    while (above <= a->heads && !legal(a, above))
        above++;
    if (above > a->heads)
        return g_strdup_printf("%u", below);
    return g_strdup_printf("%u, %u", below, above);
}

uint32_t
lh_heads_group_size(const LhProgramParams *p)
{
    const uint32_t size = lh_pass_common_divisor(p->ranks, p->attention.groups);

    return p->gpus_per_node == 0 ? size : lh_pass_common_divisor(size, p->gpus_per_node);
}

void
lh_heads_adapt_group_size(LhProgramParams *p)
{
    if (lh_heads_padded(p))
        lh_heads_pad(&p->attention, lh_heads_size(p), false);
    if (lh_heads_size(p) == 0) {
        const uint32_t size = lh_heads_group_size(p);

        lh_option_set(p, &lh_option_hierarchy, (LhOptionValue){ size, p->ranks / size });
    }
}

bool
lh_heads_check_group_size(const LhProgramParams *p, GError **error)
{
    const uint32_t size = lh_heads_size(p),
                   most = lh_pass_common_divisor(p->ranks, p->attention.groups);
    g_autoptr(GString) legal = g_string_new("1");

    if (size > 0 && most % size == 0)
        return true;
    for (uint32_t i = 2; i <= most; i++) {
        if (most % i == 0)
            g_string_append_printf(legal, ", %u", i);
    }
    return lh_program_refuse(error,
                             "groups of %u ranks that exchange heads; the size must divide the "
                             "%u ranks and the %u query groups: %s",
                             size, p->ranks, p->attention.groups, legal->str);
}
