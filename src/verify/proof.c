/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/proof.h"

#define FINDINGS_KEPT 64

char *
lh_proof_rank_op_text(const LhProof *proof, uint32_t op)
{
    const uint32_t rank = proof->op_rank[op];
    LhOp shown = proof->ops[op];
    g_autofree char *text = NULL;

    shown.id = op - proof->rank_first[rank]; /* the real id, whatever the op claims */
    text = lh_op_text(proof->program, &shown);
    return g_strdup_printf("rank %u, %s", rank, text);
}

void
lh_proof_find(LhProof *proof, LhFindingKind kind, LhFindingPlace place, const char *format, ...)
{
    LhVerdict *verdict = proof->verdict;
    LhFinding finding = {
        .kind = kind,
        .rank = place.rank,
        .op = LH_OP_NONE,
        .slot = place.slot,
        .other_rank = LH_OP_NONE,
        .other_op = LH_OP_NONE,
    };
    g_autofree char *where = NULL;
    g_autofree char *what = NULL;
    va_list args;

    verdict->findings_total++;
    if (verdict->findings->len >= FINDINGS_KEPT)
        return;
    if (place.op != LH_NONE) {
        finding.op = place.op - proof->rank_first[proof->op_rank[place.op]];
        where = lh_proof_rank_op_text(proof, place.op);
    } else if (place.rank != LH_NONE) {
        where = g_strdup_printf("rank %u", place.rank);
    } else {
        where = g_strdup("the program");
    }
    if (place.other != LH_NONE) {
        finding.other_rank = proof->op_rank[place.other];
        finding.other_op = place.other - proof->rank_first[finding.other_rank];
    }
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    finding.message = g_strdup_printf("%s %s", where, what);
    g_array_append_val(verdict->findings, finding);
}
