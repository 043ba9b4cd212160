/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Soundness and completeness of the proof on random programs. Programs are grown op by op, keeping
 * only ops that the verifier accepts; they are executed with both kernel sets, with pauses before
 * every op, and on a device that executes late: what is proven must be right. Programs grown by
 * form and order alone show that what is right is nearly always proven.
 *
 * Arguments: FIRST and COUNT print the outcome for these seeds; SEED alone prints the program.
 */
#include "checking.h"
#include "grown_program.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_write.h"
#include "reference/tolerance.h"
#include "run_tests.h"
#include "runtime/inject.h"
#include "share.h"
#include "toy_device.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVEN 1000 /* programs grown by proof */
#define FORMED 500  /* programs grown by form alone */
#define DEADLINE_US (60 * G_USEC_PER_SEC)

/* ---- judges ---- */

static const LhFinding *
finding_at(const LhVerdict *verdict, guint i)
{
    return &g_array_index(verdict->findings, LhFinding, i);
}

/* Whether the only findings are missing results. */
static bool
judge_by_proof(const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *finding = finding_at(verdict, i);

        if (finding->kind != LH_FINDING_COVERAGE || finding->op != LH_OP_NONE)
            return false;
    }
    return true;
}

/* Whether a program ends with the same results in every run, whatever it computes. */
static bool
judge_by_form(const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    for (guint i = 0; i < verdict->findings->len; i++) {
        if (finding_at(verdict, i)->kind != LH_FINDING_COVERAGE)
            return false;
    }
    return true;
}

/* ---- runs ---- */

typedef struct {
    const LhBackend *backend;
    uint32_t kernel_set;
    LhCollectiveWay collectives;
    bool pauses; /* before every op */
} Way;

static const Way ways[] = {
    { &lh_backend_cpu, 0, LH_WAY_DIRECT, false },
    { &lh_backend_cpu, 0, LH_WAY_DIRECT, true },
    { &lh_backend_cpu, 1, LH_WAY_RING, true },
    { &toy_backend, 0, LH_WAY_PAIRWISE, false },
};

/* Whether a run ends with the results of the reference; otherwise records why. */
static bool
runs_right(const LhProgram *program, const LhNumerics *numerics, const Way *way, uint64_t seed,
           GString *why)
{
    g_autofree char *pauses = g_strdup_printf("delay:%" G_GUINT64_FORMAT, seed);
    g_autofree LhInjection *injection = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(LhRunResult) result = NULL;
    g_auto(LhErrorReport) report = { 0 };
    LhNumericsLoad load = { numerics, program };
    LhRunParams params = { .program = program,
                           .backend = way->backend,
                           .collectives = way->collectives,
                           .kernel_set = way->kernel_set,
                           .deadline_us = DEADLINE_US,
                           .load = lh_numerics_load_part,
                           .load_data = &load };

    if (way->pauses && (injection = lh_injection_new(program, pauses, &error)) != NULL)
        params.hooks = &injection->hooks;
    if (error == NULL)
        result = lh_execute(&params, &error);
    if (result == NULL) {
        g_string_append_printf(why, "%s: %s; ", way->backend->name, error->message);
        return false;
    }
    lh_tolerance_compare(numerics, program, result, &report);
    for (uint32_t i = 0; i < report.rows_count; i++) {
        const LhErrorRow *row = &report.rows[i];

        if (!row->ok)
            g_string_append_printf(why, "%s, kernels %u: %s is off by %.3g (%.3g units); ",
                                   way->backend->name, way->kernel_set, row->name, row->rel_l2,
                                   row->mean);
    }
    return report.ok;
}

/* Outcome of a program. */
typedef struct {
    LhProgram *program;
    bool complete, proven, right;
    GString *why; /* why it is not proven, or not right */
} Grown;

static void
grown_clear(Grown *grown)
{
    lh_program_free(grown->program);
    if (grown->why != NULL)
        g_string_free(grown->why, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Grown, grown_clear)

/* Incomplete programs are not run. */
static void
grow(uint64_t seed, bool by_proof, Grown *grown)
{
    g_autoptr(LhVerdict) verdict = NULL;
    g_autoptr(LhNumerics) numerics = NULL;

    grown->program =
        grown_program(seed, by_proof ? judge_by_proof : judge_by_form, by_proof, &grown->complete);
    grown->why = g_string_new(NULL);
    verdict = lh_verify(grown->program);
    grown->proven = verdict->findings->len == 0;
    if (!grown->complete)
        return;
    if (!grown->proven)
        g_string_append_printf(grown->why, "%s; ", finding_at(verdict, 0)->message);
    numerics = lh_numerics_new(&grown->program->params, seed, LH_INPUTS_NORMAL);
    grown->right = true;
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++)
        grown->right =
            grown->right && runs_right(grown->program, numerics, &ways[i], seed, grown->why);
}

/* ---- forms ---- */

/* Forms that programs may have beside kernels, messages and collectives of whole parts. */
typedef enum {
    FORM_SLICES,
    FORM_SHARED_SLICES, /* of keys and values */
    FORM_HALVES,        /* in collectives */
    FORM_TENSORS,       /* several in a collective */
    FORM_ALL_TO_ALL,
    FORM_UNEVEN,
    FORM_MEMORY, /* allocated again */
    FORMS
} Form;

static const char *const form_names[] = {
    [FORM_SLICES] = "slices",         [FORM_SHARED_SLICES] = "shared slices",
    [FORM_HALVES] = "halves",         [FORM_TENSORS] = "several tensors",
    [FORM_ALL_TO_ALL] = "all-to-all", [FORM_UNEVEN] = "uneven pieces",
    [FORM_MEMORY] = "memory again",
};

static void
note_collective(const LhOp *op, bool *has)
{
    has[FORM_TENSORS] |= op->collective.tensors_count > 1;
    has[FORM_UNEVEN] |= op->collective.uneven;
    has[FORM_ALL_TO_ALL] |= op->collective.kind == LH_COLL_ALL_TO_ALL && !op->collective.uneven;
    for (uint32_t i = 0; i < op->collective.tensors_count; i++)
        has[FORM_HALVES] |= op->collective.send[i].half != LH_HALF_BOTH;
}

/* Counts the forms of a program in @counts. */
static void
count_forms(const LhProgram *program, uint64_t *counts)
{
    const LhExplicit *all = program->plan;
    bool has[FORMS] = { [FORM_SLICES] = program->head_slices > 1,
                        [FORM_SHARED_SLICES] = program->head_slices > program->kv_slices };

    for (uint32_t rank = 0; rank < all->ranks_count; rank++) {
        bool freed = false;

        for (uint32_t i = 0; i < all->ranks[rank].ops_count; i++) {
            const LhOp *op = &all->ranks[rank].ops[i];

            if (op->kind == LH_OP_COLLECTIVE)
                note_collective(op, has);
            freed |= op->kind == LH_OP_FREE;
            has[FORM_MEMORY] |= freed && op->kind == LH_OP_ALLOC;
        }
    }
    for (int form = 0; form < FORMS; form++)
        counts[form] += has[form];
}

/* ---- tests ---- */

/* Attention kernels called by proven programs; valid if tests share a process. */
static bool called[LH_KERNELS_COUNT];

static void
note_calls(const LhProgram *program)
{
    const LhExplicit *all = program->plan;

    for (uint32_t rank = 0; rank < all->ranks_count; rank++) {
        for (uint32_t i = 0; i < all->ranks[rank].ops_count; i++) {
            const LhOp *op = &all->ranks[rank].ops[i];

            if (op->kind == LH_OP_COMPUTE)
                called[op->compute.kernel] = true;
        }
    }
}

START_TEST(what_is_proven_is_right)
{
    const uint64_t count = test_share(PROVEN);
    uint64_t complete = 0, forms[FORMS] = { 0 };

    for (uint64_t seed = 0; seed < count; seed++) {
        g_auto(Grown) grown = { 0 };

        grow(seed, true, &grown);
        complete += grown.complete && grown.proven;
        ck_assert_msg(!grown.complete || !grown.proven || grown.right, "seed %u: %s",
                      (unsigned)seed, grown.why->str);
        if (!grown.complete || !grown.proven)
            continue;
        note_calls(grown.program);
        count_forms(grown.program, forms);
    }
    ck_assert_uint_ge(3 * complete, count);
    for (int k = 0; test_every() == 1 && k < LH_KERNELS_COUNT; k++)
        ck_assert_msg(called[k] || lh_kernels[k]->args != LH_ARGS_ATTENTION ||
                          k == LH_KERNEL_ID_expand_kv, /* has no attention output */
                      "%s is in no program", lh_kernels[k]->name);
    for (int form = 0; test_every() == 1 && form < FORMS; form++)
        ck_assert_msg(forms[form] > 0, "no program has %s", form_names[form]);
}
END_TEST

START_TEST(what_is_right_is_proven)
{
    const uint64_t count = test_share(FORMED);
    uint64_t right = 0, proven = 0;

    for (uint64_t seed = 0; seed < count; seed++) {
        g_auto(Grown) grown = { 0 };

        grow(seed, false, &grown);
        ck_assert_msg(!grown.complete || !grown.proven || grown.right, "seed %u: %s",
                      (unsigned)seed, grown.why->str);
        right += grown.right;
        proven += grown.right && grown.proven;
    }
    ck_assert_msg(100 * proven >= 95 * right - MIN(95 * right, 200),
                  "of %u correct programs %u are proven", (unsigned)right, (unsigned)proven);
}
END_TEST

/* ---- a range of seeds ---- */

/* Counts of programs by whether they are complete, proven and right. */
typedef struct {
    uint64_t grown, complete, proven, right, both, forms[FORMS];
} Counts;

static bool
tell_one(uint64_t seed, bool by_proof, Counts *counts)
{
    g_auto(Grown) grown = { 0 };
    bool ok;

    grow(seed, by_proof, &grown);
    ok = !grown.complete || !grown.proven || grown.right;
    counts->grown++;
    counts->complete += grown.complete;
    counts->proven += grown.complete && grown.proven;
    counts->right += grown.right;
    counts->both += grown.right && grown.proven;
    if (grown.complete && grown.proven)
        count_forms(grown.program, counts->forms);
    if (!ok)
        printf("%u: proven and WRONG: %s\n", (unsigned)seed, grown.why->str);
    else if (grown.right && !grown.proven)
        printf("%u: right, not proven: %s\n", (unsigned)seed, grown.why->str);
    return ok;
}

static int
tell(uint64_t first, uint64_t count)
{
    bool ok = true;

    for (int by_proof = 0; by_proof < 2; by_proof++) {
        Counts c = { 0 };

        for (uint64_t seed = first; seed < first + count; seed++)
            ok = tell_one(seed, by_proof != 0, &c) && ok;
        printf("grown by %s: %u, complete %u, proven %u, right %u, both %u\n",
               by_proof != 0 ? "proof" : "form", (unsigned)c.grown, (unsigned)c.complete,
               (unsigned)c.proven, (unsigned)c.right, (unsigned)c.both);
        for (int form = 0; form < FORMS; form++)
            printf("  %s: %u\n", form_names[form], (unsigned)c.forms[form]);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
write_one(uint64_t seed)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    bool complete;
    g_autoptr(LhProgram) program = grown_program(seed, judge_by_proof, true, &complete);

    if (!lh_program_write(program, text, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return EXIT_FAILURE;
    }
    fputs(text->str, stdout);
    return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    const TTest *const tests[] = { what_is_proven_is_right, what_is_right_is_proven };

    if (argc == 2)
        return write_one(g_ascii_strtoull(argv[1], NULL, 10));
    if (argc == 3)
        return tell(g_ascii_strtoull(argv[1], NULL, 10), g_ascii_strtoull(argv[2], NULL, 10));
    return lh_run_tests("grown", NULL, tests, G_N_ELEMENTS(tests));
}
