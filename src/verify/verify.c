/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver of the verifier: unrolls a program, runs the stages, and compares the totals with the
 * closed forms. A stage that needs earlier ones to succeed does not run after a finding, so that
 * one mistake gives one kind of finding. docs/reference/verifier.md states what is proven and what
 * is not.
 */
#include "step/call_ops.h"
#include "verify/proof.h"
#include "verify/verify_private.h"

#include "step/graph.h"
#include "verify/step/step_forms.h"
#include "verify/step/step_proof.h"
#include "verify/unroll.h"

#include <string.h>

static bool
unroll_ranks(LhProof *proof, const LhUnrolled *u, LhOpBuffer *buffer)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, proof->program, rank);
        while (lh_cursor_step(&cursor, buffer)) {
            if (!lh_unrolled_fits(u, buffer))
                return false;
            lh_unrolled_add(u, buffer);
        }
        proof->rank_first[rank + 1] = u->ops->len;
    }
    return true;
}

/* The proof owns the unrolled ops from now on. */
static void
take_over(LhProof *proof, LhUnrolled *u)
{
    proof->ops_count = u->ops->len;
    proof->parts_count = u->parts->len;
    proof->ops = (LhOp *)(void *)g_array_free(u->ops, FALSE);
    proof->parts = (LhPart *)(void *)g_array_free(u->parts, FALSE);
    proof->counts = (uint32_t *)(void *)g_array_free(u->counts, FALSE);
}

/* Unrolls all ranks. False, with a finding, if the program is too large. */
static bool
unroll(LhProof *proof)
{
    LhUnrolled unrolled;
    LhOpBuffer buffer = { 0 };

    lh_unrolled_init(&unrolled);
    if (!unroll_ranks(proof, &unrolled, &buffer)) {
        lh_op_buffer_clear(&buffer);
        lh_unrolled_clear(&unrolled);
        lh_proof_find(proof, LH_FINDING_MALFORMED,
                      (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE },
                      "has more than %u ops or %u messages; use fewer ranks", LH_VERIFY_OPS_MAX,
                      LH_VERIFY_PARTS_MAX);
        return false;
    }
    lh_op_buffer_clear(&buffer);
    take_over(proof, &unrolled);
    return true;
}

/* Sets the rank of every op and the op of every message. */
static void
index_ops(LhProof *proof)
{
    proof->op_rank = g_new0(uint32_t, proof->ops_count);
    proof->part_op = g_new0(uint32_t, proof->parts_count);
    proof->part_match = g_new(uint32_t, proof->parts_count);
    for (uint32_t i = 0; i < proof->parts_count; i++)
        proof->part_match[i] = LH_NONE;
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        lh_proof_index_ops(proof, rank, lh_proof_ops_of(proof, rank));
}

/* A counted total to compare with the program's claim. The finding reads "<verb> 192 <unit>, but
 * ...". */
typedef struct {
    LhClaim claim;
    const uint64_t *counted;
    const char *does, *unit;
} Claim;

static void
check_claim(LhProof *proof, const Claim *claim)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        uint64_t claimed = claim->counted[rank];

        lh_program_claim(proof->program, claim->claim, rank, &claimed);
        if (claimed != claim->counted[rank])
            lh_proof_find(
                proof, LH_FINDING_CLOSED_FORM, (LhFindingPlace){ rank, LH_NONE, -1, LH_NONE },
                "%s %" G_GUINT64_FORMAT " %s, but the closed form says %" G_GUINT64_FORMAT,
                claim->does, claim->counted[rank], claim->unit, claimed);
    }
}

static void
check_claims(LhProof *proof)
{
    const LhVerdict *verdict = proof->verdict;
    const Claim claims[] = {
        { LH_CLAIM_BYTES_SENT, verdict->bytes_sent, "sends", "bytes" },
        { LH_CLAIM_FLOPS, verdict->flops, "computes", "attention flops" },
        { LH_CLAIM_PEAK_BYTES, verdict->peak_bytes, "holds", "bytes at its peak" },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(claims); i++)
        check_claim(proof, &claims[i]);
}

/* Lists what could not be checked. */
static void
list_unchecked(const LhProof *proof)
{
    static const char *const claims[LH_CLAIMS] = {
        [LH_CLAIM_BYTES_SENT] = "Bytes sent: the program states no closed form.",
        [LH_CLAIM_FLOPS] = "Flops: the program states no closed form.",
        [LH_CLAIM_PEAK_BYTES] = "Peak memory: the program states no closed form.",
    };
    GPtrArray *unchecked = proof->verdict->unchecked;
    uint64_t value = 0;

    if (!proof->verdict->attends && proof->program->step == NULL)
        g_ptr_array_add(unchecked,
                        (gpointer) "Contents of the outputs: none is a tensor of attention.");
    for (int claim = 0; claim < LH_CLAIMS; claim++) {
        if (!lh_program_claim(proof->program, (LhClaim)claim, 0, &value))
            g_ptr_array_add(unchecked, (gpointer)claims[claim]);
    }
}

/* The stages after the declarations, with the whole program in memory. */
static void
run_whole(LhProof *proof)
{
    const uint64_t *found = &proof->verdict->findings_total;

    if (!unroll(proof))
        return;
    index_ops(proof);
    proof->verdict->ops = proof->ops_count;
    lh_proof_check_form(proof, (LhOpRange){ 0, proof->ops_count });
    if (*found > 0)
        return;
    lh_proof_make_clocks(proof);
    lh_proof_match(proof);
    if (*found == 0)
        lh_proof_check_deadlock(proof);
    if (*found == 0 && proof->program->step != NULL)
        lh_proof_check_launches(proof);
    lh_proof_check_races(proof);
    lh_proof_check_memory(proof);
    /* After a race, or with messages or buffers missing, contents are undefined. */
    if (*found == 0 && proof->program->step != NULL)
        lh_proof_check_step(proof);
    else if (*found == 0 && proof->program->modules_count == 0)
        lh_proof_check_coverage(proof);
    lh_proof_count_work(proof, (LhOpRange){ 0, proof->ops_count });
    check_claims(proof);
    if (proof->program->step != NULL)
        lh_proof_check_step_forms(proof);
    list_unchecked(proof);
}

/* How a program is proven. */
typedef enum { EITHER, IN_ORDER, WHOLE } Manner;

/* False if it cannot be proven in this manner. */
static bool
run_stages(LhProof *proof, Manner manner)
{
    if (!lh_proof_check_declarations(proof) || !lh_proof_check_contract(proof))
        return true;
    if (manner != WHOLE && lh_proof_run_in_order(proof)) {
        check_claims(proof);
        list_unchecked(proof);
        return true;
    }
    if (manner != IN_ORDER)
        run_whole(proof);
    return manner != IN_ORDER;
}

static void
finding_clear(gpointer data)
{
    g_free(((LhFinding *)data)->message);
}

LhVerdict *
lh_verdict_new(uint32_t ranks)
{
    LhVerdict *verdict = g_new0(LhVerdict, 1);

    verdict->ranks = ranks;
    verdict->bytes_sent = g_new0(uint64_t, ranks);
    verdict->flops = g_new0(uint64_t, ranks);
    verdict->peak_bytes = g_new0(uint64_t, ranks);

    verdict->findings = g_array_new(FALSE, TRUE, sizeof(LhFinding));
    g_array_set_clear_func(verdict->findings, finding_clear);
    verdict->unchecked = g_ptr_array_new();
    return verdict;
}

static void
clear_proof(LhProof *proof)
{
    g_free(proof->ops);
    g_free(proof->op_rank);
    g_free(proof->rank_first);
    g_free(proof->parts);
    g_free(proof->part_op);
    g_free(proof->part_match);
    g_free(proof->counts);
    g_free(proof->meetings);
    g_free(proof->meeting_ops);
    g_free(proof->op_meeting);
    g_free(proof->clocks);
    g_free(proof->position);
    g_free(proof->order);
    g_free(proof->alloc_first);
    g_free(proof->allocs);
}

static LhVerdict *
verify(const LhProgram *program, GArray *blocks, Manner manner)
{
    const uint32_t ranks = MIN(lh_program_ranks(program), LH_VERIFY_RANKS_MAX);
    LhVerdict *verdict = lh_verdict_new(ranks);
    LhProof proof = { .program = program, .verdict = verdict, .blocks = blocks, .ranks = ranks };

    proof.rank_first = g_new0(uint32_t, ranks + 1);
    if (!run_stages(&proof, manner))
        g_clear_pointer(&verdict, lh_verdict_free);
    clear_proof(&proof);
    return verdict;
}

LhVerdict *
lh_verify(const LhProgram *program)
{
    return verify(program, NULL, EITHER);
}

LhVerdict *
lh_verify_in_order(const LhProgram *program)
{
    return verify(program, NULL, IN_ORDER);
}

LhVerdict *
lh_verify_whole(const LhProgram *program)
{
    return verify(program, NULL, WHOLE);
}

LhVerdict *
lh_verify_blocks(const LhProgram *program, GArray *blocks)
{
    return verify(program, blocks, WHOLE);
}

/* ---- the form of a step ---- */

typedef struct {
    LhUnrolled unrolled;
    GArray *ranks; /* of each op */
} LooseOps;

static void
take_ops(void *data, uint32_t rank, const LhOpBuffer *buffer)
{
    LooseOps *loose = data;

    lh_unrolled_add(&loose->unrolled, buffer);
    for (uint32_t i = 0; i < buffer->ops_count; i++)
        g_array_append_val(loose->ranks, rank);
}

bool
lh_verify_step_form(const LhProgram *program, GError **error)
{
    g_autoptr(LhVerdict) verdict = lh_verdict_new(0);
    LooseOps loose = { .ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    LhProof proof = { .program = program, .verdict = verdict, .ranks = lh_program_ranks(program) };

    lh_unrolled_init(&loose.unrolled);
    lh_step_visit_forms(program, take_ops, &loose);
    take_over(&proof, &loose.unrolled);
    proof.op_rank = (uint32_t *)(void *)g_array_free(loose.ranks, FALSE);
    proof.rank_first = g_new0(uint32_t, proof.ranks + 1);
    lh_proof_check_loose_form(&proof);
    clear_proof(&proof);
    return verdict->findings_total == 0 ||
           lh_program_refuse(error, "the step is malformed and cannot be verified: %s",
                             g_array_index(verdict->findings, LhFinding, 0).message);
}

void
lh_verdict_free(LhVerdict *verdict)
{
    if (verdict == NULL)
        return;
    g_array_unref(verdict->findings);
    g_ptr_array_unref(verdict->unchecked);
    g_free(verdict->queue_cycle);
    g_free(verdict->bytes_sent);
    g_free(verdict->flops);
    g_free(verdict->peak_bytes);
    g_free(verdict);
}
