/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of dfa-balanced and sizes of its accumulators.
 */
#pragma once

#include "sched/common/pass.h"

/* Bytes of the accumulator of o and its statistics. The public code keeps o in the activation
 * type between steps; in fp32 the error does not grow with P. */
uint64_t lh_dfa_balanced_accumulator_bytes(const LhPassSizes *z, bool published);

/* maybe_repeat_kv_fwd() of the public code writes k and v with h heads before every call of its
 * forward kernel. The backward pass calls FlashAttention, which takes g heads. */
bool lh_dfa_balanced_expands(const LhProgramParams *p);

uint64_t lh_dfa_balanced_bytes_sent(const LhProgramParams *p, uint32_t rank);

/* H full blocks and the diagonal. For even P, and always in the public code, the ranks r < H
 * have one block less. */
uint64_t lh_dfa_balanced_flops(const LhProgramParams *p, uint32_t rank);

/* Forward: the accumulator + 2 (2Q + KV + 2S), and k, v with h heads. Backward, with gradients
 * in e bytes: 2 (4Q + 2KV + S) + KV + the fp32 sums. */
uint64_t lh_dfa_balanced_peak_bytes(const LhProgramParams *p, uint32_t rank);

/* H of P ranks are idle in one of H+1 steps, which is 1/(P+2) for even P. */
double lh_dfa_balanced_idle_unit(const LhProgramParams *p);

/* H ranks compute one full block less than the others, whose work is H n^2 + n (n+1) / 2 pairs: H
 * n^2 / (P (H n^2 + n (n+1) / 2)). */
double lh_dfa_balanced_idle_flops(const LhProgramParams *p);
