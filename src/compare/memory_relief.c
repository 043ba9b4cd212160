/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/memory_relief.h"

#include "program/live.h"
#include "remedy/ladder.h"
#include "remedy/remedy_menu.h"
#include "scenario/setting.h"
#include "scenario/setup_simulate.h"
#include "scenario/setup_weights.h"
#include "scenario/step/setup_step.h"
#include "step/memory/peak_memory.h"

#include <inttypes.h>
#include <string.h>

#define DOUBLINGS 3 /* of tensor-parallel ranks and GPUs */
#define HALVINGS 10 /* of the sequence length */

/* ---- memory of a case ---- */

static uint64_t
walk(const LhProgram *program, uint32_t rank, uint64_t by_category[LH_CATEGORIES])
{
    LhLive live;

    lh_live_walk(&live, program, rank);
    memcpy(by_category, live.peak_by_category, sizeof(live.peak_by_category));
    return live.peak_bytes;
}

/* The first of the ranks with the highest peak by the closed form of a schedule, which the verifier
 * proves; what a file claims counts as little as no form. Returns whether there is one. */
static bool
find_peak(const LhProgram *program, uint32_t *rank, uint64_t *most)
{
    *rank = 0;
    *most = 0;
    for (uint32_t r = 0; r < lh_program_ranks(program); r++) {
        uint64_t bytes;

        if (program->closed == NULL || !lh_program_claim(program, LH_CLAIM_PEAK_BYTES, r, &bytes))
            return false;
        if (bytes > *most) {
            *most = bytes;
            *rank = r;
        }
    }
    return true;
}

static uint64_t
peak_of(const LhProgram *program, uint64_t by_category[LH_CATEGORIES])
{
    uint64_t most = 0;
    uint32_t highest;

    if (program->step != NULL)
        return lh_step_peak(program, by_category);
    if (find_peak(program, &highest, &most) && walk(program, highest, by_category) == most)
        return most;
    most = 0;
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        uint64_t of_rank[LH_CATEGORIES];
        const uint64_t peak = walk(program, rank, of_rank);

        if (peak > most) {
            most = peak;
            memcpy(by_category, of_rank, sizeof(of_rank));
        }
    }
    return most;
}

/* Computes the peak; false if the case has no program. */
static bool
measure_peak(const LhScenario *scenario, uint64_t *peak_bytes, uint64_t *limit_bytes,
             uint64_t by_category[LH_CATEGORIES])
{
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, NULL);
    g_autoptr(LhProgram) program = NULL;

    if (setup == NULL || setup->schedules->len != 1)
        return false;
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (program == NULL)
        return false;
    *peak_bytes = peak_of(program, by_category);
    *limit_bytes = lh_setup_memory_limit_bytes(setup, program);
    return true;
}

/* ---- changes ---- */

/* A case and the changes tried. */
typedef struct {
    const LhScenario *base;
    const LhSetup *setup; /* setup of the case */
    const LhTask *task;   /* may be NULL */
    LhReliefs *reliefs;
    bool interrupted;
} Relief;

/* A field and its new value; several of them make a change. */
typedef struct {
    const char *field; /* NULL: nothing */
    char value[64];
} Change;

static Change
number(const char *field, uint64_t value)
{
    Change change = { .field = field };

    g_snprintf(change.value, sizeof(change.value), "%" PRIu64, value);
    return change;
}

static Change
word(const char *field, const char *value)
{
    Change change = { .field = field };

    g_strlcpy(change.value, value, sizeof(change.value));
    return change;
}

/* The number, if the scenario gives this field; otherwise it follows from the others. */
static Change
number_if_given(const Relief *r, const char *field, uint64_t value)
{
    return lh_scenario_has(r->base, field) ? number(field, value) : (Change){ .field = NULL };
}

static void
relief_free(gpointer data)
{
    LhRelief *relief = data;

    g_free(relief->options);
    g_free(relief);
}

static void
append_option(GString *out, const Change *change)
{
    const LhField *field = lh_scenario_options();
    g_autofree char *option = NULL;

    while (strcmp(field->name, change->field) != 0)
        field++;
    option = lh_setting_option(field);
    g_string_append_printf(out, "%s%s %s", out->len > 0 ? " " : "", option, change->value);
}

/* Applies @count changes together and records the result, if that case exists. */
static void
try_change(Relief *r, LhReliefKind kind, const Change *changes, guint count)
{
    g_autoptr(LhScenario) scenario = lh_scenario_copy(r->base);
    g_autoptr(GString) options = g_string_new(NULL);
    uint64_t by_category[LH_CATEGORIES] = { 0 };
    uint64_t peak_bytes, limit_bytes;
    LhRelief *relief;

    r->interrupted = r->interrupted || !lh_task_tell(r->task, &(LhProgress){ .what = "memory" });
    if (r->interrupted)
        return;
    for (guint i = 0; i < count; i++) {
        if (changes[i].field == NULL)
            continue;
        lh_scenario_replace(scenario, changes[i].field, changes[i].value);
        append_option(options, &changes[i]);
    }
    if (!measure_peak(scenario, &peak_bytes, &limit_bytes, by_category))
        return;
    relief = g_new(LhRelief, 1);
    *relief = (LhRelief){ .kind = kind,
                          .options = g_string_free(g_steal_pointer(&options), FALSE),
                          .peak_bytes = peak_bytes,
                          .fits = peak_bytes <= limit_bytes };
    g_ptr_array_add(r->reliefs->tried, relief);
}

#define CONSIDER(r, kind, ...)                                                                     \
    do {                                                                                           \
        const Change changes[] = { __VA_ARGS__ };                                                  \
        try_change(r, kind, changes, G_N_ELEMENTS(changes));                                       \
    } while (0)

/* ---- neighbours of a step ---- */

/* Stronger variants come later. */
static void
consider_policies(Relief *r)
{
    const LhStepParams *p = &r->setup->step->params;
    const bool spread = p->module.ranks * p->data_parallel > 1;
    const char *most = lh_checkpoint_names[LH_CHECKPOINT_LAYER];

    if (p->forward_only) { /* which shares nothing, or the weights */
        if (spread && p->shard != LH_SHARD_FSDP)
            CONSIDER(r, LH_RELIEF_SHARD, word("shard", lh_shard_names[LH_SHARD_FSDP]));
        return;
    }
    for (int i = LH_CHECKPOINT_NONE; lh_checkpoint_names[i] != NULL; i++) {
        if (i != (int)p->checkpoint)
            CONSIDER(r, LH_RELIEF_RECOMPUTE, word("checkpoint", lh_checkpoint_names[i]));
    }
    for (int i = (int)p->shard + 1; spread && lh_shard_names[i] != NULL; i++)
        CONSIDER(r, LH_RELIEF_SHARD, word("shard", lh_shard_names[i]));
    if (spread && p->shard != LH_SHARD_FSDP && p->checkpoint != LH_CHECKPOINT_LAYER)
        CONSIDER(r, LH_RELIEF_BOTH, word("checkpoint", most),
                 word("shard", lh_shard_names[LH_SHARD_FSDP]));
}

/* Other losses, from the one that changes least; tiled MLPs; and all that lowers a stage's peak. */
static void
consider_tiles(Relief *r)
{
    const LhStepParams *p = &r->setup->step->params;
    const bool spread = p->module.ranks * p->data_parallel > 1;
    const bool chunks = lh_step_loss_in_chunks(p);
    const Change chunked = word("loss", lh_loss_names[LH_LOSS_CHUNKED]), none = { .field = NULL };

    if (p->loss == LH_LOSS_EAGER)
        CONSIDER(r, LH_RELIEF_LOSS, word("loss", lh_loss_names[LH_LOSS_FUSED]));
    if (!chunks)
        CONSIDER(r, LH_RELIEF_LOSS, chunked);
    if (p->mlp_tile_rows == 0)
        CONSIDER(r, LH_RELIEF_TILES, word("tiled_mlp", "auto"));
    if (!chunks && (p->checkpoint != LH_CHECKPOINT_LAYER || (spread && p->shard != LH_SHARD_FSDP)))
        CONSIDER(r, LH_RELIEF_ALL,
                 p->checkpoint != LH_CHECKPOINT_LAYER
                     ? word("checkpoint", lh_checkpoint_names[LH_CHECKPOINT_LAYER])
                     : none,
                 spread && p->shard != LH_SHARD_FSDP ? word("shard", lh_shard_names[LH_SHARD_FSDP])
                                                     : none,
                 chunked);
}

/* Records what a remedy of the framework does, if there is such a step. */
static void
try_remedy(Relief *r, LhReliefKind kind, const LhRemedies *adds)
{
    const LhLadder ladder = { r->setup, g_ptr_array_index(r->setup->schedules, 0),
                              r->reliefs->limit_bytes };
    LhLadderPeak peak;
    LhRelief *relief;

    r->interrupted = r->interrupted || !lh_task_tell(r->task, &(LhProgress){ .what = "memory" });
    if (r->interrupted || !lh_ladder_peak(&ladder, adds, &peak))
        return;
    relief = g_new(LhRelief, 1);
    *relief = (LhRelief){ .kind = kind,
                          .options = lh_remedies_options(adds),
                          .peak_bytes = peak.bytes,
                          .fits = peak.fits };
    g_ptr_array_add(r->reliefs->tried, relief);
}

/* What else the framework has: modules to recompute one by one, offload of as many layers as
 * possible, types of the optimizer's states. */
static void
consider_framework(Relief *r)
{
    LhRemedies offload = { 0 };
    LhRemedyMenu menu;

    lh_remedy_menu(r->setup, &menu);
    for (guint i = 0; i < menu.count; i++) {
        const LhRemedies *adds = &menu.switches[i].adds;

        if (adds->offload != 0)
            offload = *adds; /* the last is the largest number */
        else if (adds->modules != 0 && adds->modules != LH_RECOMPUTE_BIT(CORE_ATTN))
            try_remedy(r, LH_RELIEF_MODULES, adds);
    }
    if (offload.offload != 0)
        try_remedy(r, LH_RELIEF_OFFLOAD, &offload);
    for (guint i = 0; i < menu.count; i++) {
        if (menu.switches[i].types)
            try_remedy(r, LH_RELIEF_TYPES, &menu.switches[i].adds);
    }
}

/* More micro-batches of the same sequences. */
static void
consider_micro_batches(Relief *r)
{
    const LhStepParams *p = &r->setup->step->params;
    const uint32_t size = p->module.attention.batch;

    for (uint32_t part = 2; part <= size; part *= 2) {
        if (size % part == 0)
            CONSIDER(r, LH_RELIEF_MICRO_BATCH, number("micro_batch_size", size / part),
                     number("num_micro_batches", (uint64_t)p->micro_batches * part));
    }
}

/* Tries ranks of other dimensions as tensor- or context-parallel ranks, or as stages. Sequences of
 * removed data-parallel ranks go to the remaining ones. */
static void
consider_sizes(Relief *r)
{
    const LhStepParams *p = &r->setup->step->params;
    const uint32_t c = p->module.ranks, d = p->data_parallel, t = p->tensor_parallel;
    const uint32_t stages = lh_step_stages(p);

    for (uint32_t k = 2; k <= 1u << DOUBLINGS; k *= 2) {
        const uint64_t micro_batches = (uint64_t)p->micro_batches * k;

        if (c % k == 0)
            CONSIDER(r, LH_RELIEF_TENSOR, number("tensor_model_parallel_size", t * k),
                     number_if_given(r, "context_parallel_size", c / k));
        if (d % k == 0) {
            CONSIDER(r, LH_RELIEF_TENSOR, number("tensor_model_parallel_size", t * k),
                     number("data_parallel_size", d / k),
                     number("num_micro_batches", micro_batches));
            CONSIDER(r, LH_RELIEF_CONTEXT, number("data_parallel_size", d / k),
                     number_if_given(r, "context_parallel_size", c * k),
                     number("num_micro_batches", micro_batches));
            CONSIDER(r, LH_RELIEF_PIPELINE, number("pipeline_model_parallel_size", stages * k),
                     number("data_parallel_size", d / k),
                     number("num_micro_batches", micro_batches));
        }
        if (c % k == 0 && p->micro_batches >= stages * k)
            CONSIDER(r, LH_RELIEF_PIPELINE, number("pipeline_model_parallel_size", stages * k),
                     number_if_given(r, "context_parallel_size", c / k));
    }
}

/* ---- more GPUs ---- */

/* "hgx-h100" for "hgx-h100:2". Caller frees. */
static char *
cluster_name(const LhScenario *s)
{
    const char *text = s->cluster != NULL ? s->cluster : LH_DEFAULT_CLUSTER;
    const char *colon = strrchr(text, ':');

    return colon == NULL || strchr(colon, '/') != NULL ? g_strdup(text)
                                                       : g_strndup(text, (gsize)(colon - text));
}

/* Adds context-parallel GPUs, in the options as whole nodes if they are. */
static void
consider_gpus(Relief *r)
{
    const LhNetwork *network = &r->setup->network;
    const uint64_t node = r->setup->topology->gpus_per_node;
    const bool whole = network->ranks == network->nodes * node;
    const uint64_t context =
        r->setup->step != NULL ? r->setup->step->params.module.ranks : r->setup->params.ranks;
    g_autofree char *name = cluster_name(r->base);

    for (uint32_t k = 2; k <= 1u << DOUBLINGS; k *= 2) {
        const uint64_t ranks = (uint64_t)network->ranks * k;
        g_autofree char *nodes = g_strdup_printf("%s:%" PRIu64, name, (ranks + node - 1) / node);

        CONSIDER(r, LH_RELIEF_GPUS,
                 r->base->cluster != NULL ? word("cluster", nodes) : (Change){ .field = NULL },
                 whole && r->base->cluster != NULL ? number_if_given(r, "ranks", ranks)
                                                   : number("ranks", ranks),
                 number_if_given(r, "context_parallel_size", context * k));
    }
}

/* ---- shorter sequences ---- */

/* Returns a half, a quarter, ... of the sequence length, the first that fits; 0: none. */
static uint64_t
fitting_length(const Relief *r)
{
    uint64_t tokens = r->setup->params.attention.seq_length;

    for (int i = 0; i < HALVINGS && tokens % 2 == 0 && !r->interrupted; i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_copy(r->base);
        const Change change = number("seq_length", tokens /= 2);
        uint64_t by_category[LH_CATEGORIES] = { 0 };
        uint64_t peak_bytes, limit_bytes;

        if (r->base->document_lengths != NULL && r->base->document_distribution == NULL)
            return 0;
        lh_scenario_replace(scenario, change.field, change.value);
        if (!measure_peak(scenario, &peak_bytes, &limit_bytes, by_category))
            return 0;
        if (peak_bytes <= limit_bytes)
            return tokens;
    }
    return 0;
}

/* ---- all changes ---- */

static bool
any_fits(const LhReliefs *reliefs)
{
    for (guint i = 0; i < reliefs->tried->len; i++) {
        if (((const LhRelief *)g_ptr_array_index(reliefs->tried, i))->fits)
            return true;
    }
    return false;
}

/* Computes the memory of the case itself; false if it has no program or limit. */
static bool
measure_case(LhReliefs *reliefs, const LhScenario *scenario)
{
    uint64_t by_category[LH_CATEGORIES] = { 0 };

    if (!measure_peak(scenario, &reliefs->peak_bytes, &reliefs->limit_bytes, by_category) ||
        reliefs->limit_bytes == 0)
        return false;
    for (int i = 1; i < LH_CATEGORIES; i++) {
        if (by_category[i] > by_category[reliefs->category])
            reliefs->category = i;
    }
    reliefs->category_bytes = by_category[reliefs->category];
    return true;
}

/* @fits: also if the case fits. */
static LhReliefs *
find_reliefs(const LhScenario *scenario, bool fits, const LhTask *task)
{
    g_autoptr(LhReliefs) reliefs = g_new0(LhReliefs, 1);
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, NULL);
    Relief r = { .base = scenario, .setup = setup, .task = task, .reliefs = reliefs };

    reliefs->tried = g_ptr_array_new_with_free_func(relief_free);
    if (setup == NULL || setup->cost != LH_COST_DEVICE || !measure_case(reliefs, scenario) ||
        (!fits && reliefs->peak_bytes <= reliefs->limit_bytes))
        return NULL;
    if (setup->step != NULL) {
        consider_policies(&r);
        consider_tiles(&r);
        consider_framework(&r);
        consider_micro_batches(&r);
        consider_sizes(&r);
    }
    consider_gpus(&r);
    if (reliefs->peak_bytes > reliefs->limit_bytes && !any_fits(reliefs))
        reliefs->fitting_length = fitting_length(&r);
    return r.interrupted ? NULL : g_steal_pointer(&reliefs);
}

LhReliefs *
lh_reliefs_of(const LhScenario *scenario, const LhTask *task)
{
    return find_reliefs(scenario, false, task);
}

/* The scenario of @setup with one schedule and all sizes given. Caller frees. */
static LhScenario *
with_sizes(const LhSetup *setup, const LhSchedule *schedule)
{
    LhScenario *scenario = lh_scenario_copy(setup->scenario);
    g_autofree char *length = g_strdup_printf("%" PRIu64, setup->params.attention.seq_length);

    lh_scenario_replace(scenario, "schedule", schedule->name);
    if (setup->documents == NULL || setup->scenario->document_distribution != NULL)
        /* documents that are given keep the sequence length, also with more GPUs */
        lh_scenario_replace(scenario, "seq_length", length);
    return scenario;
}

LhReliefs *
lh_reliefs(const LhSetup *setup, const LhSchedule *schedule, const LhTask *task)
{
    g_autoptr(LhScenario) scenario = with_sizes(setup, schedule);

    return find_reliefs(scenario, false, task);
}

LhReliefs *
lh_reliefs_for(const LhSetup *setup, const LhTask *task)
{
    g_autoptr(LhScenario) scenario = with_sizes(setup, g_ptr_array_index(setup->schedules, 0));

    return find_reliefs(scenario, true, task);
}

void
lh_reliefs_free(LhReliefs *reliefs)
{
    if (reliefs == NULL)
        return;
    g_ptr_array_unref(reliefs->tried);
    g_free(reliefs);
}

static int
by_need(gconstpointer a, gconstpointer b)
{
    const LhRelief *x = *(LhRelief *const *)a, *y = *(LhRelief *const *)b;

    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? -1 : 1;
    return strcmp(x->options, y->options);
}

GPtrArray *
lh_reliefs_best(const LhReliefs *reliefs, guint most)
{
    GPtrArray *best = g_ptr_array_new();
    const bool fits = any_fits(reliefs);
    bool taken[LH_RELIEF_KINDS] = { false };

    for (guint i = 0; i < reliefs->tried->len; i++) {
        LhRelief *relief = g_ptr_array_index(reliefs->tried, i);

        if (fits ? !relief->fits || taken[relief->kind] : relief->peak_bytes >= reliefs->peak_bytes)
            continue;
        taken[relief->kind] = true;
        g_ptr_array_add(best, relief);
    }
    if (!fits)
        g_ptr_array_sort(best, by_need);
    if (best->len > most)
        g_ptr_array_set_size(best, (int)most);
    return best;
}
