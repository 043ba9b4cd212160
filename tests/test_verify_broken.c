/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with one mistake each, in tests/data/broken: a causal ring of four ranks with two
 * receive buffers, written by hand (none.json has no mistake), and two ranks with invalid sums.
 * Each is rejected, and the first finding describes the mistake. Then mistakes that the file reader
 * already rejects, and random damage, which must not crash.
 */
#include "base/rng.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "recording.h"
#include "run_tests.h"
#include "sched/common/single.h"
#include "verify/verify.h"

#include <string.h>

typedef struct {
    const char *file;
    LhFindingKind kind;
    uint32_t rank, op;
    const char *slot; /* NULL: none */
    uint32_t other_rank, other_op;
    const char *message;
} Mistake;

static const Mistake mistakes[] = {
    { "added-to-itself", LH_FINDING_MALFORMED, 0, 1, "dq", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 1 (add, stream compute) writes its operand target to slot dq, which overlaps "
      "slot dq, its operand source: they must not share a part" },
    { "block-dropped", LH_FINDING_COVERAGE, 3, LH_OP_NONE, "o", LH_OP_NONE, LH_OP_NONE,
      "rank 3 ends with an output o for segment 3 that lacks the contribution of "
      "segment 1" },
    { "block-twice", LH_FINDING_COVERAGE, 3, 7, "acc", LH_OP_NONE, LH_OP_NONE,
      "rank 3, op 7 (attention_fwd, stream compute) adds segment 2 to the rows of "
      "segment 3 in slot acc a second time" },
    { "deadlock", LH_FINDING_DEADLOCK, 0, 3, NULL, 3, 4,
      "rank 0, op 3 (exchange, stream comm) waits for rank 3, op 4 (exchange, stream "
      "comm), which waits for rank 3, op 3 (exchange, stream comm), which waits for "
      "rank 2, op 4 (exchange, stream comm), which waits for rank 2, op 3 (exchange, "
      "stream comm), which waits for rank 1, op 4 (exchange, stream comm), which "
      "waits for rank 1, op 3 (exchange, stream comm), which waits for rank 0, op 4 "
      "(exchange, stream comm), which waits for rank 0, op 3 (exchange, stream comm): "
      "a cycle, so none ever ends" },
    { "double-alloc", LH_FINDING_MEMORY, 2, 4, "kv_a", 2, 1,
      "rank 2, op 4 (alloc) allocates slot kv_a, which op 1 (alloc) has already allocated" },
    { "finished-early", LH_FINDING_COVERAGE, 2, LH_OP_NONE, "o", LH_OP_NONE, LH_OP_NONE,
      "rank 2 ends with an output o for segment 2 that lacks the contribution of "
      "segment 0" },
    { "leak", LH_FINDING_MEMORY, 0, LH_OP_NONE, "kv_b", 0, 2,
      "rank 0 ends with slot kv_b still allocated by op 2 (alloc)" },
    { "lse-summed", LH_FINDING_COVERAGE, 0, 9, "lse_all", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 9 (reduce-scatter, stream comm) adds up slot lse_all (lse): logarithms of sums "
      "cannot be added" },
    { "missing-receive", LH_FINDING_UNMATCHED, 1, 7, "kv_b", LH_OP_NONE, LH_OP_NONE,
      "rank 1, op 7 (exchange, stream comm) sends kv_b to rank 2 (tag 0), which never "
      "receives it" },
    { "normalised-o-added", LH_FINDING_COVERAGE, 0, 7, "o1", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 7 (add, stream compute) adds slot o1, which is normalised over its own keys: "
      "only terms divided by the sum over the whole row can be added" },
    { "normalised-o-summed", LH_FINDING_COVERAGE, 1, 5, "o_all", LH_OP_NONE, LH_OP_NONE,
      "rank 1, op 5 (reduce-scatter, stream comm) adds slot o_all[0], which is normalised over its "
      "own keys: only terms divided by the sum over the whole row can be added" },
    { "normalised-o-weighed-onto", LH_FINDING_COVERAGE, 0, 7, "block", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 7 (weigh_out, stream compute) adds slot block to a result that is normalised "
      "over its own keys: only terms divided by the sum over the whole row can be added" },
    { "o-carried", LH_FINDING_MALFORMED, 0, 2, "part", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 2 (linear_carry, stream compute) takes slot part (o) as its operand source, "
      "which does not support that kind" },
    { "operand-twice", LH_FINDING_MALFORMED, 2, 9, "o", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 9 (normalise, stream compute) takes slot o (o) as its operand lse "
      "(lse)" },
    { "operands-overlap", LH_FINDING_MALFORMED, 0, 4, "t", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 4 (copy, stream compute) writes its operand target to slot t[0..1], which "
      "overlaps slot t[1..2], its operand source: they must not share a part" },
    { "parts-apart", LH_FINDING_MEMORY, 0, 4, "kv_all", 0, 1,
      "rank 0, op 4 (attention, stream compute) takes slot kv_all[1], which op 1 (alloc) has "
      "allocated separately from the parts before it: the parts of an operand must come from one "
      "alloc" },
    { "race-across-free", LH_FINDING_RACE, 2, 9, "kv_a", 2, 6,
      "rank 2, op 9 (exchange, stream comm) writes slot kv_a while op 6 "
      "(attention_fwd, stream compute) may still be reading it: nothing orders op 9 "
      "after op 6" },
    { "race-double-buffer", LH_FINDING_RACE, 2, 7, "kv_a", 2, 6,
      "rank 2, op 7 (exchange, stream comm) writes slot kv_a while op 6 "
      "(attention_fwd, stream compute) may still be reading it: nothing orders op 7 "
      "after op 6" },
    { "race-unwaited", LH_FINDING_RACE, 3, 8, "kv_b", 3, 5,
      "rank 3, op 8 (attention_fwd, stream compute) reads slot kv_b while op 5 "
      "(exchange, stream comm) may still be writing it: nothing orders op 8 after op "
      "5" },
    { "race-within-exchange", LH_FINDING_RACE, 1, 3, "kv_a", 1, 3,
      "rank 1, op 3 (exchange, stream comm) reads and writes slot kv_a at the same "
      "time" },
    { "received-twice", LH_FINDING_RACE, 2, 3, "kv_a", 2, 3,
      "rank 2, op 3 (exchange, stream comm) writes slot kv_a twice" },
    { "stale-kv", LH_FINDING_COVERAGE, 3, 9, "acc", LH_OP_NONE, LH_OP_NONE,
      "rank 3, op 9 (attention_fwd, stream compute) adds segment 1 to the rows of "
      "segment 3 in slot acc a second time" },
    { "swapped-order", LH_FINDING_COVERAGE, 2, 8, "acc", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 8 (attention_fwd, stream compute) adds segment 0 to the rows of "
      "segment 2 in slot acc a second time" },
    { "two-streams", LH_FINDING_RACE, 0, 6, NULL, 0, 5,
      "rank 0, op 6 (exchange, stream comm) and op 5 (exchange, stream comm2) both "
      "exchange messages with rank 1 on communicator 0, and nothing orders them: which of "
      "their messages matches first is not determined" },
    { "uninitialised-read", LH_FINDING_COVERAGE, 2, 4, "acc", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 4 (attention_fwd, stream compute) reads slot acc, which has not been written" },
    { "use-after-free", LH_FINDING_MEMORY, 2, 9, "kv_b", 2, 8,
      "rank 2, op 9 (attention_fwd, stream compute) uses slot kv_b after it was freed by op 8 "
      "(free)" },
    { "use-before-alloc", LH_FINDING_MEMORY, 1, 4, "kv_b", LH_OP_NONE, LH_OP_NONE,
      "rank 1, op 4 (exchange, stream comm) uses slot kv_b, which is not allocated "
      "yet" },
    { "wrong-bytes", LH_FINDING_CLOSED_FORM, 2, LH_OP_NONE, NULL, LH_OP_NONE, LH_OP_NONE,
      "rank 2 sends 192 bytes, but the closed form says 191" },
    { "wrong-flops", LH_FINDING_CLOSED_FORM, 3, LH_OP_NONE, NULL, LH_OP_NONE, LH_OP_NONE,
      "rank 3 computes 1856 attention flops, but the closed form says 928" },
    { "wrong-kv", LH_FINDING_COVERAGE, 2, 8, "acc", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 8 (attention_fwd, stream compute) adds segment 1 to the rows of "
      "segment 2 in slot acc a second time" },
    { "wrong-mask", LH_FINDING_COVERAGE, 0, 4, "kv", LH_OP_NONE, LH_OP_NONE,
      "rank 0, op 4 (attention_fwd, stream compute) computes every pair of query "
      "segment 0 with key segment 0, where the mask has the causal pairs shifted by 0" },
    { "wrong-operand", LH_FINDING_MALFORMED, 2, 6, "q", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 6 (attention_fwd, stream compute) takes slot q (q) as its operand "
      "kv (kv)" },
    { "wrong-peak", LH_FINDING_CLOSED_FORM, 0, LH_OP_NONE, NULL, LH_OP_NONE, LH_OP_NONE,
      "rank 0 holds 480 bytes at its peak, but the closed form says 544" },
    { "wrong-peer", LH_FINDING_UNMATCHED, 2, 7, "kv_a", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 7 (exchange, stream comm) receives kv_a from rank 1 (tag 0), which "
      "never sends it" },
    { "wrong-shift", LH_FINDING_COVERAGE, 2, 4, "kv", LH_OP_NONE, LH_OP_NONE,
      "rank 2, op 4 (attention_fwd, stream compute) computes the causal pairs shifted "
      "by -1 of query segment 2 with key segment 2, where the mask has the causal "
      "pairs shifted by 0" },
    { "wrong-size", LH_FINDING_MALFORMED, 1, 5, NULL, LH_OP_NONE, LH_OP_NONE,
      "rank 1, op 5 (exchange, stream comm) states 62 bytes on the wire, but its regions have 64" },
    { "wrong-tensor", LH_FINDING_UNMATCHED, 1, 3, "q", 2, 3,
      "rank 1, op 3 (exchange, stream comm) sends q (tag 0) where rank 2, op 3 "
      "(exchange, stream comm) receives kv_a: tensors or sizes differ" },
};

static LhProgram *
load(const char *name)
{
    g_autofree char *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path =
        g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "data", "broken", file, NULL);
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_load(path, &error);

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : path);
    return program;
}

START_TEST(broken_nothing)
{
    g_autoptr(LhProgram) program = load("none");
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    if (verdict->findings_total > 0)
        ck_abort_msg("%s", g_array_index(verdict->findings, LhFinding, 0).message);
    ck_assert_uint_eq(verdict->ranks, 4);
    ck_assert_uint_eq(verdict->ops, 4 * 11 + 6);
    ck_assert_uint_eq(verdict->messages, 12);
    ck_assert(verdict->pairs_checked == 4 * 10 + 6 * 16);
    ck_assert_uint_gt(verdict->orders_checked, 0);
    ck_assert_uint_eq(verdict->bytes_sent[3], 3 * 64);
    ck_assert_uint_eq(verdict->flops[3], 4 * 2 * 4 * (10 + 3 * 16));
    ck_assert_uint_eq(verdict->peak_bytes[3], 480);
}
END_TEST

/* The first finding describes the mistake. One mistake gives one kind of finding; totals may be
 * wrong as well. */
static void
check_mistake(const Mistake *mistake)
{
    g_autoptr(LhProgram) program = load(mistake->file);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const LhFinding *first;

    ck_assert_msg(verdict->findings->len > 0, "%s: proven", mistake->file);
    first = &g_array_index(verdict->findings, LhFinding, 0);
    ck_assert_msg(strcmp(first->message, mistake->message) == 0, "%s: %s", mistake->file,
                  first->message);
    ck_assert_msg(first->kind == mistake->kind && first->rank == mistake->rank &&
                      first->op == mistake->op && first->other_rank == mistake->other_rank &&
                      first->other_op == mistake->other_op,
                  "%s: kind %d, rank %u op %u, other rank %u op %u", mistake->file,
                  (int)first->kind, first->rank, first->op, first->other_rank, first->other_op);
    ck_assert_msg(mistake->slot == NULL
                      ? first->slot == -1
                      : strcmp(program->slots[first->slot].name, mistake->slot) == 0,
                  "%s: slot %d", mistake->file, first->slot);
    for (uint32_t k = 0; k < verdict->findings->len; k++) {
        const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, k);

        ck_assert_msg(finding->kind == mistake->kind || finding->kind == LH_FINDING_CLOSED_FORM,
                      "%s: %s", mistake->file, finding->message);
    }
}

START_TEST(broken_programs)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(mistakes); i++)
        check_mistake(&mistakes[i]);
}
END_TEST

START_TEST(broken_cyclic_after_is_refused_on_reading)
{
    g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", "data",
                                             "broken", "cyclic-after.json", NULL);
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_program_load(path, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(
        strstr(error->message, "op 6 can only come after earlier ops of its rank"));
}
END_TEST

/* Slots of none.json. */
enum {
    SLOT_Q,
    SLOT_KV,
    SLOT_O,
    SLOT_LSE,
    SLOT_ACC,
    SLOT_KV_A,
    SLOT_KV_B,
};

/* A change to an op of its rank 1. Op 6 is attention_fwd on q, kv_a, acc. */
typedef struct {
    uint32_t op;
    FieldChange changes[4];
    const char *message;
} Nonsense;

static const Nonsense nonsense[] = {
    { 6, CHANGES(OP_FIELD(after[0], 6)),
      "rank 1, op 6 (attention_fwd, stream compute) comes after op 6, which is not an earlier op" },
    { 6, CHANGES(OP_FIELD(after_count, LH_OP_AFTER_MAX + 1)),
      "rank 1, op 6 (attention_fwd, stream compute) comes after 9 ops; at most 8 are possible" },
    { 6, CHANGES(OP_FIELD(kind, LH_OP_KINDS)), "rank 1, op 6 (op) has an unknown kind or phase" },
    { 6, CHANGES(OP_FIELD(id, 9)),
      "rank 1, op 6 (attention_fwd, stream compute) has id 9; ids count up from 0" },
    { 6, CHANGES(OP_FIELD(stream, 2)),
      "rank 1, op 6 (attention_fwd) names stream 2, but there are 2" },
    { 6, CHANGES(OP_FIELD(compute.kernel, LH_KERNELS_COUNT)),
      "rank 1, op 6 (compute, stream compute) calls an unknown kernel" },
    { 6, CHANGES(OP_FIELD(compute.regions_count, 2)),
      "rank 1, op 6 (attention_fwd, stream compute) has 2 operands; attention_fwd takes 3" },
    { 6, CHANGES(OP_FIELD(compute.regions[1].slot, 7)),
      "rank 1, op 6 (attention_fwd, stream compute) names slot 7, but there are 7" },
    { 6,
      CHANGES(OP_FIELD(compute.regions[1].part, UINT32_MAX), OP_FIELD(compute.regions[1].count, 2)),
      "rank 1, op 6 (attention_fwd, stream compute) names 2 parts of slot kv_a from 4294967295 on, "
      "which has 1" },
    { 6, CHANGES(OP_FIELD(compute.regions[2].slot, SLOT_O)),
      "rank 1, op 6 (attention_fwd, stream compute) takes slot o (o) as its operand acc (acc)" },
    { 6, CHANGES(OP_FIELD(compute.kernel, LH_KERNEL_ID_add), OP_FIELD(compute.regions_count, 2)),
      "rank 1, op 6 (add, stream compute) takes slot kv_a (kv) as its operand target beside slot q "
      "(q): they must be of one kind" },
    { 8, CHANGES(OP_FIELD(compute.kernel, LH_KERNEL_ID_round_out)),
      "rank 1, op 8 (round_out, stream compute) takes slot acc (acc) as its operand out (out)" },
    /* Its rows count d elements each; a statistic has one. */
    { 6,
      CHANGES(OP_FIELD(compute.kernel, LH_KERNEL_ID_zero), OP_FIELD(compute.regions_count, 1),
              OP_FIELD(compute.regions[0].slot, SLOT_LSE)),
      "rank 1, op 6 (zero, stream compute) takes slot lse (lse) as its operand target, which does "
      "not support that kind" },
    { 6,
      CHANGES(OP_FIELD(compute.kernel, LH_KERNEL_ID_cast), OP_FIELD(compute.regions_count, 2),
              OP_FIELD(compute.regions[0].slot, SLOT_KV),
              OP_FIELD(compute.regions[1].slot, SLOT_KV_B)),
      "rank 1, op 6 (cast, stream compute) takes slot kv_b (bf16) as its operand target (fp32)" },
    { 4, CHANGES(OP_FIELD(compute.args.shift, 1)),
      "rank 1, op 4 (attention_fwd, stream compute) has a causal mask shifted by 1; kernels have 0 "
      "and -1" },
    { 4, CHANGES(OP_FIELD(compute.args.heads, 4)),
      "rank 1, op 4 (attention_fwd, stream compute) is called for batch 1, 4 heads, 1 groups, but "
      "the program has 1, 2, 1" },
    { 4, CHANGES(OP_FIELD(compute.args.head_dim, 8)),
      "rank 1, op 4 (attention_fwd, stream compute) is called for head dimension 8, but slot q has "
      "4" },
    { 5, CHANGES(MESSAGE_FIELD(0, peer, 1)),
      "rank 1, op 5 (exchange, stream comm) sends to rank 1: peers are the other ranks below 4" },
    { 5, CHANGES(MESSAGE_FIELD(1, peer, 4)),
      "rank 1, op 5 (exchange, stream comm) receives from rank 4: peers are the other ranks below "
      "4" },
    { 5, CHANGES(MESSAGE_FIELD(0, wire_bytes, 0)),
      "rank 1, op 5 (exchange, stream comm) states 0 bytes on the wire, but its regions have 64" },
    { 5, CHANGES(MESSAGE_FIELD(0, regions_count, 0)),
      "rank 1, op 5 (exchange, stream comm) has a message of 0 regions; 1 to 4 are possible" },
    { 9, CHANGES(OP_FIELD(memory.region.slot, SLOT_Q)),
      "rank 1, op 9 (free) names slot q, which exists for the whole program" },
    { 9, CHANGES(OP_FIELD(memory.region.count, 2)),
      "rank 1, op 9 (free) names 2 parts of slot acc from 0 on, which has 1" },
    { 0, CHANGES(OP_FIELD(memory.region.slot, 100)),
      "rank 1, op 0 (alloc) names slot 100, but there are 7" },
};

START_TEST(broken_ops_that_name_what_does_not_exist)
{
    g_autoptr(LhProgram) program = load("none");

    for (uint32_t i = 0; i < G_N_ELEMENTS(nonsense); i++) {
        const Nonsense *n = &nonsense[i];
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;
        const LhFinding *finding;

        recording_change(recording, 1, n->op, n->changes, G_N_ELEMENTS(n->changes));
        verdict = lh_verify(&recording->program);
        ck_assert_msg(verdict->findings->len == 1, "%u findings, not one: %s",
                      verdict->findings->len, n->message);
        finding = &g_array_index(verdict->findings, LhFinding, 0);
        ck_assert_str_eq(finding->message, n->message);
        ck_assert_msg(finding->kind == LH_FINDING_MALFORMED && finding->rank == 1 &&
                          finding->op == n->op,
                      "kind %d of rank %u, op %u: %s", (int)finding->kind, finding->rank,
                      finding->op, n->message);
        recording_free(recording);
    }
}
END_TEST

static void
expect_unmatched(const Recording *recording, uint32_t rank, uint32_t op, const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(&recording->program);
    const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, 0);

    ck_assert_uint_gt(verdict->findings->len, 0);
    ck_assert_str_eq(finding->message, message);
    ck_assert_int_eq(finding->kind, LH_FINDING_UNMATCHED);
    ck_assert_uint_eq(finding->rank, rank);
    ck_assert_uint_eq(finding->op, op);
}

/* Rank 1 sends to rank 2 in its ops 3, 5 and 7, which rank 2 receives in its ops 3, 5 and 7:
 * messages match by order and communicator, not by tag. */
START_TEST(broken_messages_match_in_order)
{
    g_autoptr(LhProgram) program = load("none");
    Recording *recording = recording_new(program);
    LhOp *op = recording_op(recording, 1, 5);
    g_autoptr(LhVerdict) verdict = NULL;

    recording_part(recording, 1, op, 0)->tag = 3;
    expect_unmatched(recording, 1, 5,
                     "rank 1, op 5 (exchange, stream comm) sends tag 3 where rank 2, op 5 "
                     "(exchange, stream comm) receives tag 0: messages of one communicator match "
                     "in order, whatever their tags");
    recording_part(recording, 2, recording_op(recording, 2, 5), 1)->tag = 3;
    verdict = lh_verify(&recording->program);
    ck_assert_msg(verdict->findings->len == 0, "tags do not match messages");
    op->communicator = 1; /* where it neither receives from rank 0 nor sends to rank 2 */
    expect_unmatched(recording, 0, 6,
                     "rank 0, op 6 (exchange, stream comm) sends kv_b to rank 1 (tag 0), which "
                     "never receives it");
    recording_free(recording);
}
END_TEST

static void
expect_declaration(LhProgram *program, const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, 0);

    ck_assert_uint_eq(verdict->findings->len, 1);
    ck_assert_str_eq(finding->message, message);
    ck_assert_int_eq(finding->kind, LH_FINDING_MALFORMED);
}

START_TEST(broken_declarations)
{
    g_autoptr(LhProgram) program = load("none");
    LhSlot *slot = &program->slots[4];
    const LhSlot whole = *slot;

    slot->head_dim = 0;
    expect_declaration(program, "the program has an empty slot acc");
    slot->head_dim = whole.head_dim;
    slot->by_heads = true;
    expect_declaration(program, "the program has a slot acc by heads, but no saved_group");
    slot->by_heads = false;
    slot->parts = 2;
    expect_declaration(
        program, "the program does not number the parts of its slots consecutively (slot kv_a)");
    slot->parts = 1;
    program->slots[2].head_dim = 8;
    expect_declaration(program, "the program has an input or output slot o with heads of 8, but "
                                "its heads have 4");
    program->slots[2].head_dim = 4;
    slot->parts = UINT32_MAX;
    expect_declaration(program, "the program has too many slot parts to verify; use fewer ranks");
    slot->parts = 2;
    slot->part_bytes = UINT64_MAX / 2 + 1;
    expect_declaration(program, "the program has more than 2^60 bytes in its slots (up to acc)");
    slot->part_bytes = 0;
    expect_declaration(program, "the program has an empty slot acc");
    slot->part_bytes = 64;
    slot->kind = LH_TENSOR_KINDS;
    expect_declaration(program, "the program has a slot acc of unknown kind or role");
    slot->kind = LH_TENSOR_ACC;
    slot->role = LH_SLOT_OUTPUT;
    expect_declaration(
        program,
        "the program has 2 parts in its input or output slot acc, but a rank holds 1 segments");
    slot->role = LH_SLOT_TEMP;
    program->placement.seq_length = program->params.attention.seq_length = 17;
    expect_declaration(program, "the program cannot split 17 tokens into 4 equal segments");
    program->placement.seq_length = 16;
    expect_declaration(
        program, "the program has a placement whose ranks or length differ from its parameters");
    program->params.ranks = 5000;
    expect_declaration(program, "the program has 5000 ranks; the verifier supports 1 to 4096");
    program->params.ranks = 0;
    expect_declaration(program, "the program has 0 ranks; the verifier supports 1 to 4096");
}
END_TEST

/* Overwrites a random field with a random small or huge value. */
static void
scramble(Recording *recording, uint64_t seed)
{
    const uint64_t bits = lh_rng_bits(seed, 0, 0);
    const uint32_t rank = bits % 4;
    const uint32_t id = (uint32_t)(bits >> 8) % recording_count(recording, rank);
    const uint32_t value = (bits >> 24) % 4 == 0 ? UINT32_MAX - (uint32_t)(bits >> 40) % 3
                                                 : (uint32_t)(bits >> 40) % 12;
    LhOp *op = recording_op(recording, rank, id);
    LhRegion *region = &op->compute.regions[value % 3];
    LhPart *part = NULL;

    if (op->kind == LH_OP_EXCHANGE) {
        part =
            recording_part(recording, rank, op, (uint32_t)(bits >> 50) % op->exchange.parts_count);
        region = &part->regions[0];
    } else if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        region = &op->memory.region;
    } else if (op->kind != LH_OP_COMPUTE) {
        region = NULL;
    }
    switch ((bits >> 28) % 12) {
    case 0:
        op->stream = (uint8_t)value;
        break;
    case 1:
        op->after_count = (uint8_t)value;
        break;
    case 2:
        op->after[0] = value;
        op->after_count = MAX(op->after_count, 1);
        break;
    case 3:
        op->communicator = (uint8_t)value;
        break;
    case 4:
        if (region != NULL)
            region->slot = (uint16_t)value;
        break;
    case 5:
        if (region != NULL)
            region->part = value;
        break;
    case 6:
        if (region != NULL)
            region->count = value;
        break;
    case 7:
        if (op->kind == LH_OP_COMPUTE)
            op->compute.kernel = (LhKernelId)value;
        break;
    case 8:
        if (op->kind == LH_OP_COMPUTE)
            op->compute.args.nk = value;
        break;
    case 9:
        if (part != NULL)
            part->peer = value;
        break;
    case 10:
        if (part != NULL)
            part->regions_count = (uint8_t)value;
        break;
    default:
        if (part != NULL)
            part->tag = (uint16_t)value;
        break;
    }
}

START_TEST(broken_at_random)
{
    g_autoptr(LhProgram) program = load("none");
    uint32_t found = 0;

    for (uint64_t seed = 0; seed < 20000; seed++) {
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;

        for (uint64_t i = 0; i <= seed % 3; i++)
            scramble(recording, 16 * seed + i);
        verdict = lh_verify(&recording->program);
        ck_assert_uint_le(verdict->findings->len, 64);
        ck_assert_uint_le(verdict->findings->len, verdict->findings_total);
        found += verdict->findings_total > 0;
        recording_free(recording);
    }
    ck_assert_uint_gt(found, 10000);
}
END_TEST

/* dk, dv take every query once, even if the gradients of q go to different slots. */
START_TEST(broken_gradient_of_keys_taken_twice)
{
    const LhProgramParams params = { .attention = { .batch = 1,
                                                    .seq_length = 16,
                                                    .heads = 2,
                                                    .groups = 2,
                                                    .head_dim = 4,
                                                    .dtype = LH_DTYPE_BF16 },
                                     .ranks = 1,
                                     .mask.causal = true,
                                     .pass = LH_PASS_BWD };
    g_autoptr(LhProgram) program = lh_program_new_single("twice", LH_PLACE_CONTIGUOUS, &params);
    Recording *recording = recording_new(program);
    GArray *ops = recording->ops[0];
    LhOp again = g_array_index(ops, LhOp, 0), alloc = { .id = 1, .kind = LH_OP_ALLOC };
    LhOp zero = again, end = { .id = 4, .kind = LH_OP_FREE };
    const uint32_t dq = again.compute.regions_count - 2u;
    g_autoptr(LhVerdict) verdict = NULL;

    ck_assert_uint_eq(ops->len, 1);
    recording->program.slots = g_new0(LhSlot, program->slots_count + 1);
    memcpy(recording->program.slots, program->slots, program->slots_count * sizeof(LhSlot));
    recording->program.slots[program->slots_count] = program->slots[again.compute.regions[dq].slot];
    recording->program.slots[program->slots_count].role = LH_SLOT_TEMP;
    recording->program.slots[program->slots_count].first_cell = lh_program_cells(program);
    recording->program.slots_count++;
    alloc.memory.region = (LhRegion){ (uint16_t)program->slots_count, 0, 1 };
    end.memory.region = alloc.memory.region;
    end.after_count = 1;
    end.after[0] = 3;
    zero.id = 2;
    zero.compute.kernel = LH_KERNEL_ID_zero;
    zero.compute.regions_count = 1;
    zero.compute.regions[0] = alloc.memory.region;
    zero.compute.args.nk = 0;
    again.id = 3;
    again.compute.args.first = false;
    again.compute.regions[dq] = alloc.memory.region;
    g_array_append_val(ops, alloc);
    g_array_append_val(ops, zero);
    g_array_append_val(ops, again);
    g_array_append_val(ops, end);
    verdict = lh_verify(&recording->program);
    ck_assert_uint_gt(verdict->findings->len, 0);
    ck_assert_str_eq(g_array_index(verdict->findings, LhFinding, 0).message,
                     "rank 0, op 3 (attention_bwd_o, stream compute) adds segment 0 to the rows of "
                     "segment 0 in slot dkv a second time");
    g_free(recording->program.slots);
    recording_free(recording);
}
END_TEST

/* An in-place kernel writes exactly the parts that it reads. */
START_TEST(broken_in_place_by_a_part)
{
    const LhProgramParams params = {
        .attention = { .batch = 1,
                       .seq_length = 32,
                       .heads = 4,
                       .groups = 4,
                       .head_dim = 16,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = 4,
        .pass = LH_PASS_BOTH,
    };
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("rsa", NULL), &params, NULL);
    Recording *recording = recording_new(program);
    g_autoptr(LhVerdict) verdict = NULL;
    uint32_t index = 0;
    LhOp *op;

    do
        op = recording_op(recording, 0, index++);
    while (op->kind != LH_OP_COMPUTE || op->compute.kernel != LH_KERNEL_ID_scores_softmax_bwd);
    ck_assert_uint_eq(op->compute.regions[1].slot, op->compute.regions[2].slot);
    ck_assert_uint_eq(op->compute.regions[2].count, 4);
    for (uint32_t i = 0; i < 3; i++)
        op->compute.regions[i].count = 3;
    op->compute.regions[2].part = 1;
    verdict = lh_verify(&recording->program);
    ck_assert_uint_gt(verdict->findings->len, 0);
    ck_assert_ptr_nonnull(strstr(g_array_index(verdict->findings, LhFinding, 0).message,
                                 "writes its operand ds to slot dscores[1..3], which overlaps slot "
                                 "dscores[0..2], its operand dp: they must not share a part"));
    recording_free(recording);
}
END_TEST

LH_TEST_MAIN("verify_broken", broken_nothing, broken_programs,
             broken_cyclic_after_is_refused_on_reading, broken_ops_that_name_what_does_not_exist,
             broken_messages_match_in_order, broken_gradient_of_keys_taken_twice,
             broken_in_place_by_a_part, broken_declarations, broken_at_random)
