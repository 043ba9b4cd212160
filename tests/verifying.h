/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of the verifier that run over all schedules.
 */
#pragma once

#include "options.h"
#include "verify/verify.h"

static inline LhProgramParams
params_of(uint32_t ranks, LhPass pass, bool causal, bool overlap, bool grouped)
{
    LhProgramParams p = {
        .attention = { .batch = 1,
                       .seq_length = (uint64_t)ranks * 8,
                       .heads = 8,
                       .groups = grouped ? 2 : 8,
                       .head_dim = 16,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = ranks,
        .mask.causal = causal,
        .pass = pass,
    };

    set_option(&p, "no_overlap", !overlap);
    return p;
}

static inline const char *
first_message(const LhVerdict *verdict)
{
    return verdict->findings->len == 0 ? "no finding"
                                       : g_array_index(verdict->findings, LhFinding, 0).message;
}
