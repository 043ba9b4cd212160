/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the programs of a schedule to prove.
 */
#include "proof/proof_cases.h"

#include "proof/proof_tasks.h"
#include "proof/proven.h"
#include "proof/run_time_estimate.h"
#include "scenario/step/setup_step.h"

#define OPTIONS_RANKS_MAX 16 /* options are varied up to this number of ranks, grids at any */
#define BOTH_RANKS_MAX 8     /* options and grids are varied under each mask up to this number */
#define NARROW 3             /* window size, tokens */
#define DECAY 0.75

#define DOCUMENTS_TOKENS_MIN 64 /* sequence length below which documents are not tried */

/* --- variations
 * --------------------------------------------------------------------------------- */

typedef struct {
    const LhProveParams *params;
    const LhSchedule *schedule;
    LhProven *proven;
    GPtrArray *tasks;           /* of all schedules, for the current number of ranks */
    bool heads_free, mask_free; /* not set by the scenario */
    bool kind_free; /* kind of attention not set; then both are proven, if the schedule supports
                       both */
    LhProgramParams base;
    bool grouped;    /* the current number of ranks divides into the scenario's groups */
    guint findings;  /* before the current number of ranks */
    unsigned built;  /* programs for it */
    double *seconds; /* NULL, or estimate only: adds up the proof times instead of proving */
} Prover;

/* Whether the scenario sets none of @names (NULL-terminated). */
static bool
is_free(const Prover *v, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (lh_scenario_has(v->params->scenario, *names))
            return false;
    }
    return true;
}

/* Rounds heads up so that every rank has the same number; grouped heads stay grouped. */
static void
fit_heads(LhProgramParams *p)
{
    const uint32_t share = p->attention.heads / p->attention.groups;

    p->attention.groups = p->ranks;
    p->attention.heads = p->ranks * share;
    p->attention.hidden_size = 0;
}

static LhProgram *
make_program(const Prover *v, const LhProgramParams *wanted, GError **error)
{
    g_autoptr(GError) first = NULL;
    LhProgramParams p = *wanted;
    LhProgram *program = lh_program_new(v->schedule, &p, &first);

    if (program == NULL && v->heads_free) {
        fit_heads(&p);
        program = lh_program_new(v->schedule, &p, NULL);
    }
    if (program == NULL)
        g_propagate_error(error, g_steal_pointer(&first));
    return program;
}

/* Queues @program (takes ownership) for a proof, or adds its estimated time. */
static void
take_program(Prover *v, LhProgram *program, const char *what)
{
    v->built++;
    if (v->seconds != NULL) {
        *v->seconds += lh_run_time_prove(program);
        lh_program_free(program);
    } else {
        LhProofTask *task = g_new0(LhProofTask, 1);

        task->proven = v->proven;
        task->program = program;
        task->what = g_strdup(what);
        task->ops = lh_run_time_ops(program);
        for (uint32_t i = 0; i < program->slots_count; i++)
            task->cells += (uint64_t)program->slots[i].parts * lh_program_ranks(program);
        g_ptr_array_add(v->tasks, task);
    }
}

static void
count_refusal(const Prover *v, uint32_t ranks, const char *what, const GError *refusal)
{
    v->proven->refusals++;
    if (v->proven->refusal == NULL)
        v->proven->refusal = g_strdup_printf("%u rank%s%s: %s", ranks, ranks == 1 ? "" : "s", what,
                                             refusal->message);
}

/* Proves the schedule with @p in every pass; @what says how @p differs from the scenario. */
static void
prove_case(Prover *v, const LhProgramParams *p, const char *what)
{
    const uint32_t ranks = lh_params_ranks(p);

    for (LhPass pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
        LhProgramParams wanted = *p;
        g_autoptr(GError) refusal = NULL;
        g_autoptr(LhProgram) program = NULL;

        if ((v->params->passes & (1u << pass)) == 0)
            continue;
        wanted.pass = pass;
        program = make_program(v, &wanted, &refusal);
        if (program != NULL)
            take_program(v, g_steal_pointer(&program), what);
        else
            count_refusal(v, ranks, what, refusal);
    }
}

/* --- options ------------------------------------------------------------------------------------
 */

/* Whether @option is read by the schedule, not set by the scenario, and has an effect on @base. */
static bool
is_open(const Prover *v, const LhOption *option, const LhProgramParams *base)
{
    return option != v->schedule->not_varied &&
           !lh_scenario_has(v->params->scenario, option->name) &&
           (base->attention.linear || !option->linear_only) &&
           (v->heads_free || option->shape == NULL) &&
           (base->ranks <= OPTIONS_RANKS_MAX || option->at_every_size);
}

/* Proves @base, which @what describes, with each value of each open option, one option at a
 * time. */
static void
prove_options(Prover *v, const LhProgramParams *base, const char *what)
{
    const LhOption *const *options = v->schedule->options;

    for (; options != NULL && *options != NULL; options++) {
        LhOptionValue value;

        if (!is_open(v, *options, base))
            continue;
        for (uint32_t i = 0; lh_option_value(*options, base, i, &value); i++) {
            LhProgramParams p = *base;
            g_autofree char *option = lh_option_text(*options, value);
            g_autofree char *both = g_strconcat(what, ", ", option, NULL);

            if ((*options)->shape != NULL)
                (*options)->shape(&p);
            lh_option_set(&p, *options, value);
            prove_case(v, &p, both);
        }
    }
}

/* Varies the decay, which belongs to linear attention and not to a schedule. */
static void
prove_decay(Prover *v, const LhProgramParams *base, const char *what)
{
    LhProgramParams p = *base;
    g_autofree char *both = g_strconcat(what, ", linear-decay", NULL);

    if (!p.attention.linear || p.ranks > OPTIONS_RANKS_MAX ||
        lh_scenario_has(v->params->scenario, "linear_decay"))
        return;
    p.attention.decay = DECAY;
    prove_case(v, &p, both);
}

/* Varies shapes: grouped heads, several sequences, another element type. */
static void
prove_shapes(Prover *v, const LhProgramParams *base, const char *what)
{
    const LhScenario *told = v->params->scenario;
    const LhAttention *a = &base->attention;
    LhProgramParams p = *base;

    if (base->ranks > OPTIONS_RANKS_MAX)
        return;
    if (v->heads_free && a->groups == a->heads && a->heads % 2 == 0) {
        g_autofree char *text = g_strconcat(what, ", grouped heads", NULL);

        p.attention.groups = a->heads / 2;
        prove_case(v, &p, text);
    }
    if (v->heads_free && base->ranks > 1) {
        g_autofree char *text = g_strconcat(what, ", fewer key-value heads than ranks", NULL);

        p.attention.heads = 2 * base->ranks;
        p.attention.groups = base->ranks % 2 == 0 ? base->ranks / 2 : 1;
        p.attention.hidden_size = 0;
        prove_case(v, &p, text);
    }
    p = *base;
    if (!lh_scenario_has(told, "micro_batch_size") && a->batch == 1) {
        g_autofree char *text = g_strconcat(what, ", 2 sequences", NULL);

        p.attention.batch = 2;
        prove_case(v, &p, text);
    }
    p = *base;
    if (!lh_scenario_has(told, "dtype") && a->dtype != LH_DTYPE_FP32) {
        g_autofree char *text = g_strconcat(what, ", fp32", NULL);

        p.attention.dtype = LH_DTYPE_FP32;
        prove_case(v, &p, text);
    }
}

/* --- masks --------------------------------------------------------------------------------------
 */

static void
prove_mask(Prover *v, LhMaskRule mask, const char *what)
{
    LhProgramParams p = v->base;

    p.mask = mask;
    prove_case(v, &p, what);
    if (p.ranks <= BOTH_RANKS_MAX)
        prove_options(v, &p, what);
}

/* Varies masks: the full mask, windows that end within segments or leave most blocks empty, and
 * documents of uneven lengths. */
static void
prove_masks(Prover *v)
{
    const uint64_t n = v->base.attention.seq_length;
    const uint64_t ends[] = { n / 5 + 1, n / 2 + 1, n - n / 7, n };
    const bool windows = (v->schedule->masks & LH_MASKS_WINDOW) != 0;
    const bool documents = (v->schedule->masks & LH_MASKS_DOCUMENTS) != 0;

    if (!v->mask_free || v->base.attention.linear)
        return;
    if (v->schedule->full_reason == NULL)
        prove_mask(v, (LhMaskRule){ .causal = false }, ", full mask");
    if (windows)
        prove_mask(v, (LhMaskRule){ .causal = true, .window = n / 3 + 1 }, ", window");
    if (windows)
        prove_mask(v, (LhMaskRule){ .causal = true, .window = NARROW }, ", narrow window");
    if (documents && n >= DOCUMENTS_TOKENS_MIN)
        prove_mask(v,
                   (LhMaskRule){ .causal = true,
                                 .document_ends = ends,
                                 .documents_count = G_N_ELEMENTS(ends) },
                   ", documents");
}

/* --- a schedule ---------------------------------------------------------------------------------
 */

/* Rejects numbers of ranks that do not divide into the data-parallel groups of the scenario. */
static bool
has_groups(Prover *v, uint64_t ranks)
{
    const uint64_t groups = MAX(v->params->scenario->data_parallel_size, 1);

    if (ranks % groups == 0)
        return true;
    if (v->proven->refusal == NULL)
        v->proven->refusal =
            g_strdup_printf("%" G_GUINT64_FORMAT " rank%s: not %" G_GUINT64_FORMAT " equal groups",
                            ranks, ranks == 1 ? "" : "s", groups);
    g_array_append_val(v->proven->refused, ranks);
    return false;
}

static void
prove_kind(Prover *v, const char *what)
{
    const unsigned built = v->built;

    prove_case(v, &v->base, what);
    if (v->built == built)
        return;
    prove_decay(v, &v->base, what);
    prove_shapes(v, &v->base, what);
    prove_options(v, &v->base, what);
    prove_masks(v);
}

static void
prove_kinds(Prover *v)
{
    const bool softmax = lh_schedule_takes(v->schedule, false);

    for (int linear = 0; linear < 2; linear++) {
        if (!lh_schedule_takes(v->schedule, linear != 0))
            continue;
        v->base.attention.linear = linear != 0;
        prove_kind(v, linear != 0 && softmax ? ", linear attention" : "");
    }
}

/* A training step is proven as described, without variations. */
static void
prove_step(Prover *v, uint32_t ranks)
{
    const LhProveParams *params = v->params;
    g_autoptr(GError) refusal = NULL;
    LhProgram *program =
        lh_setup_step_program(params->scenario, &params->sources, v->schedule, ranks, &refusal);

    if (program == NULL) {
        count_refusal(v, ranks, "", refusal);
        return;
    }
    take_program(v, program, "");
}

static bool
prove_modules(Prover *v, uint32_t ranks, GError **error)
{
    if (!lh_setup_params(v->params->scenario, &v->params->sources, ranks, &v->base, error))
        return false;
    if (v->kind_free)
        prove_kinds(v);
    else
        prove_kind(v, "");
    return true;
}

/* Queues the programs of a schedule for @ranks. */
static bool
queue_ranks(Prover *v, uint64_t ranks, GError **error)
{
    v->findings = v->proven->findings->len;
    v->built = 0;
    v->grouped = has_groups(v, ranks);
    if (!v->grouped)
        return true;
    if (!v->params->scenario->step)
        return prove_modules(v, (uint32_t)ranks, error);
    prove_step(v, (uint32_t)ranks);
    return true;
}

static void
note_outcome(const Prover *v, uint64_t ranks)
{
    GArray *outcome = v->built == 0                            ? v->proven->refused
                      : v->proven->findings->len > v->findings ? v->proven->unproven
                                                               : v->proven->proven;

    if (v->grouped)
        g_array_append_val(outcome, ranks);
}

static Prover
prover_of(const LhProveParams *params, const LhSchedule *schedule, LhProven *proven)
{
    static const char *const kind[] = { "attention", "model", NULL };
    static const char *const heads[] = { "num_attention_heads", "num_query_groups", "model", NULL };
    static const char *const mask[] = { "mask", "window_size", "document_lengths", NULL };
    Prover v = { .params = params, .schedule = schedule, .proven = proven };

    v.kind_free = is_free(&v, kind);
    v.heads_free = is_free(&v, heads);
    v.mask_free = is_free(&v, mask);
    return v;
}

static void
proven_free(gpointer data)
{
    lh_proven_free(data);
}

/* Proves all schedules for one number of ranks after the other, or only adds up times if @seconds
 * is not NULL. */
static GPtrArray *
prove(const LhProveParams *params, const GPtrArray *schedules, const GArray *ranks, double *seconds,
      GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(proven_free);
    g_autoptr(GPtrArray) tasks = g_ptr_array_new_with_free_func(lh_proof_task_free);
    g_autofree Prover *provers = g_new0(Prover, schedules->len);
    uint64_t ended = 0;

    for (guint i = 0; i < schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);
        LhProven *proven = lh_proven_new(schedule->name);

        g_ptr_array_add(all, proven);
        provers[i] = prover_of(params, schedule, proven);
        provers[i].tasks = tasks;
        provers[i].seconds = seconds;
    }
    for (guint k = 0; k < ranks->len; k++) {
        const uint64_t number = g_array_index(ranks, uint64_t, k);

        for (guint i = 0; i < schedules->len; i++) {
            if (!queue_ranks(&provers[i], number, error))
                return NULL;
        }
        lh_proof_tasks_verify(tasks, &params->task, &ended);
        for (guint i = 0; i < schedules->len; i++)
            note_outcome(&provers[i], number);
    }
    return g_steal_pointer(&all);
}

GPtrArray *
lh_prove(const LhProveParams *params, const GPtrArray *schedules, const GArray *ranks,
         GError **error)
{
    return prove(params, schedules, ranks, NULL, error);
}

double
lh_prove_work(const LhProveParams *params, const GPtrArray *schedules, const GArray *ranks)
{
    double seconds = 0;
    g_autoptr(GPtrArray) counted = prove(params, schedules, ranks, &seconds, NULL);

    return counted == NULL ? 0 : seconds;
}
