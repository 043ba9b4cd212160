/*
 * The verifier's frame: unrolls a program, runs the stages, and holds the totals against the closed
 * forms. A stage that cannot trust the ones before it does not run, so that one mistake gives one
 * kind of finding. What is proven, and what is not, is written down in docs/verifier.md.
 */
#include "sched/verify_private.h"

#include <string.h>

#define FINDINGS_KEPT 64

const char *const lh_finding_names[] = {
    [LH_FINDING_UNMATCHED] = "unmatched", [LH_FINDING_DEADLOCK] = "deadlock",
    [LH_FINDING_RACE] = "race",           [LH_FINDING_COVERAGE] = "coverage",
    [LH_FINDING_MEMORY] = "memory",       [LH_FINDING_CLOSED_FORM] = "closed form",
    [LH_FINDING_MALFORMED] = "malformed", NULL,
};

char *
lh_proof_op_text(const LhProof *proof, uint32_t op)
{
    const LhOp *o = &proof->ops[op];
    const uint32_t id = op - proof->rank_first[proof->op_rank[op]];
    const char *what = "op";

    if (o->kind < LH_OP_KINDS)
        what = lh_op_kind_names[o->kind];
    if (o->kind == LH_OP_COMPUTE && (uint32_t)o->compute.kernel < (uint32_t)LH_KERNELS_COUNT)
        what = lh_proof_kernel(o)->name;
    if (o->kind == LH_OP_COLLECTIVE && (uint32_t)o->collective.kind < (uint32_t)LH_COLL_KINDS)
        what = lh_collective_names[o->collective.kind];
    if (!lh_proof_on_stream(o) || o->stream >= proof->program->streams_count)
        return g_strdup_printf("op %u (%s)", id, what);
    return g_strdup_printf("op %u (%s, stream %s)", id, what,
                           proof->program->streams[o->stream].name);
}

char *
lh_proof_rank_op_text(const LhProof *proof, uint32_t op)
{
    g_autofree char *text = lh_proof_op_text(proof, op);

    return g_strdup_printf("rank %u, %s", proof->op_rank[op], text);
}

char *
lh_proof_cell_text(const LhProof *proof, uint32_t slot, uint32_t part)
{
    const LhSlot *s = &proof->program->slots[slot];

    if (s->parts == 1)
        return g_strdup(s->name);
    return g_strdup_printf("%s[%u]", s->name, part);
}

void
lh_proof_find(LhProof *proof, LhFindingKind kind, LhPlace place, const char *format, ...)
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

/* Appends one step of a rank to the proof's arrays. */
static void
unroll_step(GArray *ops, GArray *parts, const LhOpBuffer *buffer)
{
    const uint32_t parts_base = parts->len;

    for (uint32_t i = 0; i < buffer->ops_count; i++) {
        LhOp op = buffer->ops[i];

        if (op.kind == LH_OP_EXCHANGE) {
            /* Parts outside the buffer are no parts at all; the form check sees the empty exchange.
             */
            if ((uint64_t)op.exchange.parts_first + op.exchange.parts_count > buffer->parts_count)
                op.exchange.parts_count = 0;
            op.exchange.parts_first += parts_base;
        }
        g_array_append_val(ops, op);
    }
    if (buffer->parts_count > 0)
        g_array_append_vals(parts, buffer->parts, buffer->parts_count);
}

/* Runs all cursors. False, with a finding, if the program is too large to be held. */
static bool
unroll(LhProof *proof)
{
    g_autoptr(GArray) ops = g_array_new(FALSE, FALSE, sizeof(LhOp));
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
    LhOpBuffer buffer = { 0 };
    bool fits = true;

    for (uint32_t rank = 0; rank < proof->ranks && fits; rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, proof->program, rank);
        while (fits && lh_cursor_step(&cursor, &buffer)) {
            fits = buffer.ops_count <= LH_VERIFY_OPS_MAX - ops->len &&
                   buffer.parts_count <= LH_VERIFY_PARTS_MAX - parts->len;
            if (fits)
                unroll_step(ops, parts, &buffer);
        }
        proof->rank_first[rank + 1] = ops->len;
    }
    lh_op_buffer_clear(&buffer);
    if (!fits) {
        lh_proof_find(proof, LH_FINDING_MALFORMED, (LhPlace){ LH_NONE, LH_NONE, -1, LH_NONE },
                      "has more than %u ops or %u messages; prove it for fewer ranks",
                      LH_VERIFY_OPS_MAX, LH_VERIFY_PARTS_MAX);
        return false;
    }
    proof->ops_count = ops->len;
    proof->parts_count = parts->len;
    proof->ops = (LhOp *)(void *)g_array_free(g_steal_pointer(&ops), FALSE);
    proof->parts = (LhPart *)(void *)g_array_free(g_steal_pointer(&parts), FALSE);
    return true;
}

/* Says for every op its rank and for every part its op. */
static void
index_ops(LhProof *proof)
{
    proof->op_rank = g_new0(uint32_t, proof->ops_count);
    proof->part_op = g_new0(uint32_t, proof->parts_count);
    proof->part_match = g_new(uint32_t, proof->parts_count);
    for (uint32_t i = 0; i < proof->parts_count; i++)
        proof->part_match[i] = LH_NONE;
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++) {
            const LhOp *op = &proof->ops[g];

            proof->op_rank[g] = rank;
            if (op->kind != LH_OP_EXCHANGE)
                continue;
            for (uint32_t i = 0; i < op->exchange.parts_count; i++)
                proof->part_op[op->exchange.parts_first + i] = g;
        }
    }
}

static void
count_work(LhProof *proof)
{
    LhVerdict *verdict = proof->verdict;

    for (uint32_t g = 0; g < proof->ops_count; g++) {
        const LhOp *op = &proof->ops[g];
        const uint32_t rank = proof->op_rank[g];

        if (op->kind == LH_OP_COMPUTE) {
            const LhKernel *kernel = lh_proof_kernel(op);

            if (lh_kernel_counts_flops(kernel))
                verdict->flops[rank] += kernel->flops(&op->compute.args);
        } else if (op->kind == LH_OP_COLLECTIVE) {
            verdict->bytes_sent[rank] += lh_collective_bytes_sent(
                op->collective.kind, &op->collective.group, rank, op->collective.wire_bytes);
        } else if (op->kind == LH_OP_EXCHANGE) {
            for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
                const LhPart *part = &proof->parts[op->exchange.parts_first + i];

                if (part->send)
                    verdict->bytes_sent[rank] += part->wire_bytes;
            }
        }
    }
}

typedef uint64_t (*ClosedForm)(const LhProgramParams *params, uint32_t rank);

/* One number per rank, against the schedule's closed form or what an explicit program states of
 * itself; either may be NULL. The finding reads "<does> 192 <unit>, but ...". */
typedef struct {
    ClosedForm form;
    const uint64_t *stated;
    const uint64_t *counted;
    const char *does, *unit;
} Claim;

static void
check_claim(LhProof *proof, const Claim *claim)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        uint64_t claimed = claim->counted[rank];

        if (claim->form != NULL)
            claimed =
                claim->form(&proof->program->params, lh_program_group_rank(proof->program, rank));
        else if (claim->stated != NULL)
            claimed = claim->stated[rank];
        if (claimed != claim->counted[rank])
            lh_proof_find(proof, LH_FINDING_CLOSED_FORM, (LhPlace){ rank, LH_NONE, -1, LH_NONE },
                          "%s %" G_GUINT64_FORMAT
                          " %s, but the closed form says %" G_GUINT64_FORMAT,
                          claim->does, claim->counted[rank], claim->unit, claimed);
    }
}

static void
check_closed_forms(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const LhClosedForms *closed = lh_closed_forms(program->schedule, &program->params);
    const LhStatedForms *stated = &program->stated;
    const LhVerdict *verdict = proof->verdict;
    const Claim claims[] = {
        { closed->bytes_sent, stated->bytes_sent, verdict->bytes_sent, "sends", "bytes" },
        { closed->flops, stated->flops, verdict->flops, "computes", "attention flops" },
        { closed->peak_bytes, stated->peak_bytes, verdict->peak_bytes, "holds",
          "bytes at its peak" },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(claims); i++)
        check_claim(proof, &claims[i]);
}

static void
run_stages(LhProof *proof)
{
    const uint64_t *found = &proof->verdict->findings_total;

    if (!lh_proof_check_declarations(proof) || !unroll(proof))
        return;
    index_ops(proof);
    proof->verdict->ops = proof->ops_count;
    lh_proof_check_form(proof);
    if (*found > 0)
        return;
    lh_proof_make_clocks(proof);
    lh_proof_match(proof);
    if (*found == 0)
        lh_proof_check_deadlock(proof);
    lh_proof_check_races(proof);
    lh_proof_check_memory(proof);
    /* Under a race, or without its messages or buffers, contents are undefined. */
    if (*found == 0)
        lh_proof_check_coverage(proof);
    count_work(proof);
    check_closed_forms(proof);
}

static void
finding_clear(gpointer data)
{
    g_free(((LhFinding *)data)->message);
}

LhVerdict *
lh_verify(const LhProgram *program)
{
    LhVerdict *verdict = g_new0(LhVerdict, 1);
    const uint32_t ranks = MIN(lh_program_ranks(program), LH_VERIFY_RANKS_MAX);
    LhProof proof = { .program = program, .verdict = verdict, .ranks = ranks };

    verdict->findings = g_array_new(FALSE, TRUE, sizeof(LhFinding));
    g_array_set_clear_func(verdict->findings, finding_clear);
    verdict->ranks = ranks;
    verdict->bytes_sent = g_new0(uint64_t, ranks);
    verdict->flops = g_new0(uint64_t, ranks);
    verdict->peak_bytes = g_new0(uint64_t, ranks);
    proof.rank_first = g_new0(uint32_t, ranks + 1);
    run_stages(&proof);
    g_free(proof.ops);
    g_free(proof.op_rank);
    g_free(proof.rank_first);
    g_free(proof.parts);
    g_free(proof.part_op);
    g_free(proof.part_match);
    g_free(proof.cell_first);
    g_free(proof.meetings);
    g_free(proof.meeting_ops);
    g_free(proof.op_meeting);
    g_free(proof.clocks);
    g_free(proof.position);
    g_free(proof.order);
    return verdict;
}

void
lh_verdict_free(LhVerdict *verdict)
{
    if (verdict == NULL)
        return;
    g_array_unref(verdict->findings);
    g_free(verdict->bytes_sent);
    g_free(verdict->flops);
    g_free(verdict->peak_bytes);
    g_free(verdict);
}
