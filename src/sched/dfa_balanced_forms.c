/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/dfa_balanced_forms.h"

uint64_t
lh_dfa_balanced_accumulator_bytes(const LhPassSizes *z, bool published)
{
    return z->q / z->e * (published ? z->e : 4) + 2 * z->s;
}

bool
lh_dfa_balanced_expands(const LhProgramParams *p)
{
    return lh_pass_published(p) && p->attention.heads > p->attention.groups;
}

static uint64_t
expanded_bytes(const LhProgramParams *p, const LhPassSizes *z)
{
    return lh_dfa_balanced_expands(p) ? 2 * z->q : 0;
}

/* The number of messages of each kind that a rank sends, by the formulas of
 * docs/reference/schedules.md. */
typedef struct {
    uint64_t kv, q, result_q, result_kv;
} Counts;

static uint64_t
difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static Counts
count_messages(const LhProgramParams *p, uint64_t rank)
{
    const uint64_t ranks = p->ranks, half = ranks / 2;
    Counts c = { .kv = MIN(half, ranks - 1 - rank), .result_kv = MIN(rank, half) };

    if (ranks % 2 == 1 && !lh_pass_published(p)) {
        c.q = difference(rank, half);
        c.result_q = difference(half, rank);
        return c;
    }
    c.q = difference(rank, ranks - half);
    c.result_q = difference(half, rank + 1);
    /* k, v sent in step H and never used */
    if (lh_pass_published(p) && rank + half + 1 < ranks)
        c.kv++;
    return c;
}

uint64_t
lh_dfa_balanced_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const Counts c = count_messages(p, rank);
    uint64_t bytes = 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += c.kv * z.kv + c.q * z.q + c.result_q * (z.q + 2 * z.s);
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += c.kv * z.kv + c.q * (3 * z.q + z.s) + c.result_q * z.dq + c.result_kv * z.dkv;
    return bytes;
}

uint64_t
lh_dfa_balanced_flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;
    const uint64_t half = p->ranks / 2;
    const bool one_less = rank < half && (p->ranks % 2 == 0 || lh_pass_published(p));

    return lh_pass_flops(p, (half - (one_less ? 1 : 0)) * n * n + n * (n + 1) / 2);
}

uint64_t
lh_dfa_balanced_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t sums = lh_pass_published(p) ? 0 : lh_pass_sums_bytes(&z);

    (void)rank;
    return lh_pass_peak_bytes(p,
                              lh_dfa_balanced_accumulator_bytes(&z, lh_pass_published(p)) +
                                  2 * (2 * z.q + z.kv + 2 * z.s) + expanded_bytes(p, &z),
                              2 * (3 * z.q + z.dq + z.kv + z.dkv + z.s) + z.dkv + sums);
}

double
lh_dfa_balanced_idle_unit(const LhProgramParams *p)
{
    const uint32_t half = p->ranks / 2;

    if (p->ranks % 2 == 1 && !lh_pass_published(p))
        return 0;
    return half / (p->ranks * (half + 1.0));
}

double
lh_dfa_balanced_idle_flops(const LhProgramParams *p)
{
    const uint32_t half = p->ranks / 2;
    const double n = (double)p->attention.seq_length / p->ranks;

    if (p->ranks % 2 == 1 && !lh_pass_published(p))
        return 0;
    return 2.0 * half * n / (p->ranks * ((2.0 * half + 1) * n + 1));
}
