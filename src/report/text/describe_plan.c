/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_plan.h"

#include "base/escape.h"
#include "compare/error_bar.h"
#include "report/base/text.h"
#include "report/data/constants.h"
#include "report/data/memory_limit.h"
#include "report/data/notes.h"
#include "report/text/describe.h"
#include "report/text/describe_comparison.h"
#include "report/text/describe_config.h"
#include "report/text/describe_relief.h"
#include "report/text/plan_tables.h"

#define FAMILIES_SHOWN 8

/* Describes a configuration with @on turned on. Caller frees. */
static char *
way_with(const LhPlanSpace *space, guint point, const LhRemedies *on)
{
    const LhPlanPoint *p = lh_plan_point(space, point);
    const LhPlanShape *shape = lh_plan_shape(space, p);
    g_autofree char *schedule = lh_plan_point_schedule(space, point);
    g_autofree char *pipeline = lh_plan_point_pipeline(space, point);
    g_autofree char *remedies = lh_remedies_options(on);

    GString *text = g_string_new(NULL);

    g_string_printf(text, "tp %u, cp %u, dp %u", shape->sizes.tensor, shape->sizes.context,
                    shape->sizes.data);
    if (shape->sizes.pipeline > 1)
        g_string_append_printf(text, ", pp %s", pipeline);
    if (space->sequences > 1)
        g_string_append_printf(text, ", micro-batches %u x %u", shape->micro_batches,
                               shape->micro_batch_size);
    if (shape->sizes.context > 1)
        g_string_append_printf(text, ", %s", schedule);
    g_string_append_printf(
        text, ", %s, recomputed: %s", lh_shard_names[p->shard],
        lh_checkpoint_names[lh_remedies_checkpoint(on, (LhCheckpoint)p->checkpoint)]);
    if (remedies[0] != '\0')
        g_string_append_printf(text, ", with %s", remedies);
    return g_string_free(text, FALSE);
}

char *
lh_describe_way(const LhPlanSpace *space, guint point)
{
    return way_with(space, point, &lh_plan_point(space, point)->remedies);
}

/* ---- query ---- */

void
lh_describe_plan_question(const LhPlanQuery *query, const LhPlanSpace *space, GString *out)
{
    const LhSetup *setup = space->setup;
    const LhAttention *a = &setup->params.attention;
    const LhMaskRule *mask = &setup->params.mask;
    g_autofree char *tokens = lh_format_count(a->seq_length);
    g_autofree char *sequences = lh_format_count(query->sequences);

    g_string_append(out, "one training step");
    lh_describe_model(setup, out);
    g_string_append_printf(out, ": %s sequence%s of %s tokens, %s", sequences,
                           query->sequences == 1 ? "" : "s", tokens, lh_dtype_names[a->dtype]);
    if (mask->documents_count > 0)
        g_string_append_printf(out, ", %u document%s", mask->documents_count,
                               mask->documents_count == 1 ? "" : "s");
    if (setup->step != NULL) {
        lh_describe_tiles(&setup->step->params, out);
        lh_describe_optimizer(&setup->step->params, out);
    }
    g_string_append_printf(out, "; framework %s\n", space->frameworks);
    lh_describe_experts(setup->model, 0, -1, out);
    lh_describe_notes(setup->model, out);
}

static void
describe_space(const LhPlanSpace *space, GString *out)
{
    const LhSetup *setup = space->setup;
    g_autofree char *usable = NULL;

    g_string_append_printf(out, "%s: %u x %s", space->cluster, space->gpus, setup->device->name);
    if (!lh_topology_change_is_empty(&setup->scenario->change)) {
        g_string_append(out, " (");
        lh_describe_links(setup, out);
        g_string_append(out, ")");
    }
    usable = lh_format_bytes(lh_device_usable_bytes(setup->device, LH_MEMORY_MARGIN));
    g_string_append_printf(out, ", of which a step may use %s each\n", usable);
}

static void
describe_counts(const LhPlanSearch *search, GString *out)
{
    static const struct {
        LhPointState state;
        const char *words;
    } said[] = {
        { LH_POINT_RAN, "simulated" },
        { LH_POINT_CUT, "pruned (their lower bound exceeds the best time)" },
        { LH_POINT_UNFIT, "out of memory" },
        { LH_POINT_REFUSED, "refused" },
        { LH_POINT_FAILED, "failed" },
        { LH_POINT_OPEN, "not decided" },
    };
    g_autofree char *points = lh_format_count(search->space->points->len);
    const char *separator = ": ";

    g_string_append_printf(out, "%s configurations", points);
    for (guint i = 0; i < G_N_ELEMENTS(said); i++) {
        g_autofree char *count = lh_format_count(search->counts[said[i].state]);

        if (search->counts[said[i].state] == 0)
            continue;
        g_string_append_printf(out, "%s%s %s", separator, count, said[i].words);
        separator = ", ";
    }
    g_string_append_c(out, '\n');
}

/* ---- findings ---- */

static void
describe_ties(const LhPlanCluster *cluster, GString *out)
{
    const LhPlanOutcome *outcomes = cluster->search->outcomes;
    const LhPlanWay *best = lh_plan_best_way(cluster), *worst = NULL;
    guint tied = 0;

    for (guint i = 1; i < cluster->ways->len; i++) {
        const LhPlanWay *way = g_ptr_array_index(cluster->ways, i);

        tied += way->tied;
        if (way->tied && (worst == NULL || way->error > worst->error))
            worst = way;
    }
    if (worst == NULL)
        return;
    g_string_append_printf(out, "%u of the configurations shown %s tied with it: ", tied,
                           tied == 1 ? "is" : "are");
    lh_describe_good_to(
        cluster->space->setup, worst->error,
        lh_error_between_most(&outcomes[best->point].parts, &outcomes[worst->point].parts), out);
    g_string_append(out, ". ");
}

/* Appends the main contributions to the error bar of the fastest configuration. */
static void
describe_best_trust(const LhPlanCluster *cluster, GString *out)
{
    const LhPlanWay *best = lh_plan_best_way(cluster);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSensitivities) s = NULL;
    LhPlanCase c;

    if (best->time_error.above <= 0 || !lh_plan_case_init(&c, cluster->space, best->point, NULL))
        return;
    program = lh_plan_case_program(&c, NULL);
    s = lh_sensitivities(&c.setup, program, &cluster->search->outcomes[best->point].parts,
                         best->time_error.above);
    lh_describe_sensitivities(&c.setup, s, out);
    g_string_append_c(out, '\n');
}

static void
describe_best(const LhPlanCluster *cluster, GString *out)
{
    const LhPlanWay *best = lh_plan_best_way(cluster);
    g_autofree char *way = lh_describe_way(cluster->space, best->point);
    LhPlanCase c;

    g_string_append_printf(out, "The fastest %s %s: %.4g s per step",
                           cluster->interrupted ? "so far is" : "is", way, best->iteration_s);
    if (best->time_error.above > 0)
        g_string_append_printf(out, ", %.4g s to %.4g s in four measurements of five",
                               best->iteration_s / (1 + best->time_error.below),
                               best->iteration_s * (1 + best->time_error.above));
    g_string_append(out, ". ");
    describe_ties(cluster, out);
    if (lh_plan_case_init(&c, cluster->space, best->point, NULL)) {
        const gsize from = out->len;

        lh_describe_bound(&c.setup, cluster->bound, "It", out);
        if (out->len > from)
            g_string_erase(out, (gssize)from, 1); /* its leading space */
    }
    while (out->len > 0 && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
}

static void
describe_refusals(const LhPlanSearch *search, GString *out)
{
    g_autoptr(GPtrArray) families = lh_plan_refusals(search);

    for (guint i = 0; i < MIN(families->len, FAMILIES_SHOWN); i++) {
        const LhPlanFamily *family = g_ptr_array_index(families, i);
        g_autofree char *count = lh_format_count(family->points);

        g_string_append_printf(out, "refused, %s%s: ", count, family->points > 1 ? " such as" : "");
        lh_escape_line(out, family->reason);
        g_string_append_c(out, '\n');
    }
    if (families->len > FAMILIES_SHOWN)
        g_string_append_printf(out, "refused for %u more reasons; see --format json\n",
                               families->len - FAMILIES_SHOWN);
}

static void
describe_misses(const LhPlanSearch *search, GString *out)
{
    for (guint i = 0; i < search->misses->len; i++) {
        const guint point = g_array_index(search->misses, guint, i);
        const uint64_t peak_bytes = search->outcomes[point].peak_bytes;
        g_autofree char *way = lh_describe_way(search->space, point);
        g_autofree char *needed = lh_format_bytes(peak_bytes);

        g_string_append_printf(out, "%s%s needs %s",
                               i == 0 ? "closest to fitting: " : "                    ", way,
                               needed);
        lh_describe_peak_interval(search->space->setup, peak_bytes, out);
        g_string_append_c(out, '\n');
    }
}

static void
describe_longest(const LhPlanSpace *space, const LhPlanLongest *longest, GString *out)
{
    g_autofree char *tokens = lh_format_count(longest->tokens);
    g_autofree char *unit = lh_format_count(longest->unit);
    g_autofree char *way = way_with(space, longest->point, &longest->on);
    int most = 0;

    for (int c = 1; c < LH_CATEGORIES; c++) {
        if (longest->fits.by_category[c] > longest->fits.by_category[most])
            most = c;
    }
    g_string_append_printf(
        out,
        "The longest sequence that fits has %s tokens, with %s. It is bound by memory: %.4g "
        "GiB of %.4g GiB, %.4g GiB of it %s; %s more tokens ",
        tokens, way, (double)longest->fits.peak_bytes / LH_GIB,
        (double)longest->fits.limit_bytes / LH_GIB,
        (double)longest->fits.by_category[most] / LH_GIB, lh_category_names[most], unit);
    if (longest->beyond.peak_bytes > longest->beyond.limit_bytes)
        g_string_append_printf(out, "need %.4g GiB.\n",
                               (double)longest->beyond.peak_bytes / LH_GIB);
    else
        g_string_append(out, "do not fit in the memory of the hosts.\n");
}

static void
describe_training(const LhPlanAnswer *answer, const LhPlanWeights *weights, guint index,
                  GString *out)
{
    const LhPlanWay *best = lh_plan_best_way(lh_plan_cluster_at(answer, index));
    const LhPlanBill bill = lh_plan_bill(weights, answer, index, best);
    g_autofree char *tokens = lh_format_count((LhWide)weights->tokens);

    if (weights->tokens <= 0)
        return;
    g_string_append_printf(out, "%s tokens take %.4g days, %.4g GPU hours", tokens, bill.days,
                           bill.gpu_hours);
    if (bill.cost > 0)
        g_string_append_printf(out, ", and cost %.*f", LH_MONEY_DECIMALS, bill.cost);
    g_string_append(out, ".\n");
}

/* ---- one cluster ---- */

void
lh_describe_plan_cluster(const LhPlanCluster *cluster, GString *out)
{
    describe_space(cluster->space, out);
    if (cluster->search != NULL)
        describe_counts(cluster->search, out);
}

/* Prints the Pareto front: points that no other one beats in both time and memory. */
static void
print_front(const LhPlanQuery *query, const LhPlanAnswer *answer, const LhPlanWeights *weights,
            guint index, LhFormat format, GString *out)
{
    g_autoptr(LhTable) table = lh_describe_front(query, answer, weights, index);

    g_string_append(out, "\nconfigurations not beaten in both time and memory:\n");
    lh_table_print(table, format, out);
}

/* Describes a cluster on which nothing runs: the smallest peak, and changes that would make it
 * fit. */
static void
describe_no_way(const LhPlanCluster *cluster, GString *out)
{
    g_autofree char *way = NULL, *what = NULL;

    g_string_append(out, "None of them can run here.");
    if (cluster->reliefs == NULL) {
        g_string_append_c(out, '\n');
        return;
    }
    way = lh_describe_way(cluster->space, cluster->relieved);
    what = g_strdup_printf(" The lowest peak has %s", way);
    lh_describe_need(cluster->reliefs, what, out);
    lh_describe_reliefs(cluster->reliefs, out);
}

void
lh_describe_plan_answer(const LhPlanQuery *query, const LhPlanAnswer *answer,
                        const LhPlanWeights *weights, guint index, GString *out)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(answer, index);

    if (cluster->sizes_tried > 0)
        g_string_append_printf(
            out,
            "This is the smallest number of GPUs that fits the step: %u smaller numbers do not.\n",
            cluster->sizes_tried);
    if (cluster->ways->len > 0) {
        describe_best(cluster, out);
        describe_best_trust(cluster, out);
        describe_training(answer, weights, index, out);
    } else if (!cluster->interrupted) {
        describe_no_way(cluster, out);
    } else {
        g_string_append(out, cluster->search == NULL
                                 ? "Not decided: none of its configurations was evaluated.\n"
                                 : "Not decided: none of the configurations evaluated can run "
                                   "here, and others were not evaluated.\n");
    }
    if (query->longest)
        describe_longest(cluster->space, &answer->longest, out);
}

void
lh_describe_plan_rest(const LhPlanCluster *cluster, GString *out)
{
    describe_misses(cluster->search, out);
    describe_refusals(cluster->search, out);
}

/* Prints the file's own configuration, and the fastest as settings of the file. */
static void
print_start(const LhPlanQuery *query, const LhPlanCluster *cluster, LhFormat format, GString *out)
{
    const LhPlanWay *best = lh_plan_best_way(cluster);
    const gsize from = out->len;

    g_string_append_c(out, '\n');
    lh_describe_start(query->config, cluster->start, cluster->space->gpus,
                      best != NULL ? best->iteration_s : 0,
                      lh_device_usable_bytes(cluster->space->setup->device, LH_MEMORY_MARGIN), out);
    if (best != NULL)
        g_string_append_printf(out, "The fastest configuration as settings of %s:\n",
                               lh_config_system_name(query->config));
    lh_table_words(format, out, from);
    if (best != NULL)
        lh_describe_words(query->config, cluster->space, best->point, format, out);
}

void
lh_describe_plan_part(const LhPlanQuery *query, const LhPlanAnswer *answer,
                      const LhPlanWeights *weights, guint index, LhFormat format, GString *out)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(answer, index);
    gsize from = out->len;

    g_string_append_c(out, '\n');
    lh_describe_plan_cluster(cluster, out);
    lh_describe_link_notes(cluster->space->setup, out);
    lh_table_words(format, out, from);
    if (cluster->ways->len > 0) {
        g_autoptr(LhTable) ways = lh_describe_ways(query, answer, weights, index);

        g_string_append_c(out, '\n');
        lh_table_print(ways, format, out);
        if (query->front)
            print_front(query, answer, weights, index, format, out);
        g_string_append_c(out, '\n');
    }
    from = out->len;
    lh_describe_plan_answer(query, answer, weights, index, out);
    if (cluster->search != NULL)
        lh_describe_plan_rest(cluster, out);
    lh_table_words(format, out, from);
    if (cluster->start != NULL)
        print_start(query, cluster, format, out);
}

/* ---- comparison of clusters ---- */

static void
print_clusters(const LhPlanAnswer *answer, const LhPlanWeights *weights, LhFormat format,
               GString *out)
{
    g_autoptr(LhTable) table = lh_describe_clusters(answer, weights);

    g_string_append(out, "\nfastest configuration on each cluster:\n");
    lh_table_print(table, format, out);
}

void
lh_describe_plan_head(const LhPlanQuery *query, const LhPlanAnswer *answer, LhFormat format,
                      GString *out)
{
    const gsize from = out->len;

    lh_describe_plan_question(query, lh_plan_cluster_at(answer, 0)->space, out);
    if (query->config != NULL)
        lh_describe_config(query->config, out);
    lh_table_words(format, out, from);
}

/* What the clusters have to turn on, of which configuration. */
static void
print_fits(const LhPlanAnswer *answer, LhFormat format, GString *out)
{
    g_autoptr(LhTable) table = lh_describe_fits(answer);
    gsize from;

    if (table == NULL)
        return;
    from = out->len;
    g_string_append_c(out, '\n');
    for (guint i = 0; i < answer->clusters->len; i++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, i);
        static const LhRemedies none = { 0 };
        g_autofree char *way = NULL;

        if (cluster->fit == NULL)
            continue;
        way = way_with(cluster->space, cluster->fit->point, &none);
        g_string_append_printf(
            out,
            "%s: to %s %.4g GiB, %s turns on, in the order of bytes freed for a second lost:\n",
            cluster->space->cluster, cluster->fit->fits ? "fit into" : "come closest to",
            (double)cluster->fit->limit_bytes / LH_GIB, way);
    }
    lh_table_words(format, out, from);
    lh_table_print(table, format, out);
}

void
lh_describe_plan_end(const LhPlanAnswer *answer, const LhPlanWeights *weights, LhFormat format,
                     GString *out)
{
    if (answer->clusters->len > 1)
        print_clusters(answer, weights, format, out);
    print_fits(answer, format, out);
    if (answer->interrupted)
        g_string_append(out, "\nInterrupted: these are the results so far; configurations that "
                             "were not evaluated may be faster.\n");
}
