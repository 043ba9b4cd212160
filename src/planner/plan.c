/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/plan.h"

#include "base/allocation.h"
#include "base/error.h"
#include "compare/step_plan.h"
#include "planner/search_log.h"
#include "step/formulas.h"

#include "config.h"
#include "scenario/setup_simulate.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Most nodes tried for the smallest cluster, where the topology has no limit. */
#define NODES_SOUGHT 1024

/* A plan in progress. */
typedef struct {
    const LhPlanQuery *query;
    LhPlanAnswer *answer;
    LhSearchLog *points; /* NULL: no file */
    LhScenario *longest; /* the scenario with the longest sequence; NULL: not requested */
    LhProcesses processes;
    atomic_bool interrupted;
} Plan;

static bool
report_plan(void *data, const LhProgress *at)
{
    Plan *plan = data;

    if (!plan->interrupted && !lh_task_tell(&plan->query->task, at))
        plan->interrupted = true;
    return !plan->interrupted;
}

/* Task for work on the whole space. */
static LhTask
task_on(Plan *plan, const LhPlanSpace *space)
{
    return (LhTask){ .jobs = lh_plan_threads(plan->query->task.jobs, space),
                     .progress = report_plan,
                     .data = plan };
}

/* Fails with LH_ERROR_INTERRUPTED: without a space to search there is no partial answer. */
static bool
fail_interrupted(const char *what, const char *cluster, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                "interrupted while looking for %s of %s: nothing is decided", what, cluster);
    return false;
}

/* ---- metrics ---- */

LhPlanWay
lh_plan_way(const LhPlanSearch *search, guint index)
{
    const LhPlanSpace *space = search->space;
    const LhPlanOutcome *o = &search->outcomes[index];
    const double seconds = (double)o->time_ps / (double)LH_PS_PER_S;
    LhPlanWay way = { .point = index,
                      .iteration_s = seconds,
                      .peak_bytes = o->peak_bytes,
                      .limit_bytes = search->limit_bytes,
                      .time_error = o->time_error };
    LhPlanCase c;
    LhModel model;
    LhStepParams unpadded;

    if (!lh_plan_case_init(&c, space, index, NULL))
        g_assert_not_reached(); /* it was simulated */
    model = *c.setup.model;     /* without padding */
    unpadded = c.step.params;
    unpadded.model = &model;
    way.tokens_per_s = (double)lh_step_tokens(&c.step.params) / seconds;
    way.mfu = lh_step_model_flops(&unpadded, &model) / seconds / space->gpus /
              c.setup.device->matrix_rate;
    return way;
}

static void
add_ways(LhPlanCluster *cluster, guint top)
{
    const LhPlanSearch *search = cluster->search;
    const bool device = cluster->space->setup->cost == LH_COST_DEVICE;

    for (guint i = 0; i < MIN(search->ran->len, top); i++) {
        const guint first = g_array_index(search->ran, guint, 0);
        const guint point = g_array_index(search->ran, guint, i);
        LhPlanWay *way = g_new(LhPlanWay, 1);

        *way = lh_plan_way(search, point);
        if (!device) {
            way->time_error = (LhTimeError){ 0 };
        } else if (i > 0) {
            way->error =
                lh_error_between(&search->outcomes[first].parts, &search->outcomes[point].parts);
            way->tied = (double)search->outcomes[point].time_ps <=
                        (double)search->outcomes[first].time_ps * (1 + way->error);
        }
        g_ptr_array_add(cluster->ways, way);
    }
}

const LhPlanWay *
lh_plan_best_way(const LhPlanCluster *cluster)
{
    return cluster->ways->len > 0 ? g_ptr_array_index(cluster->ways, 0) : NULL;
}

/* ---- rejections ---- */

static void
family_free(gpointer data)
{
    LhPlanFamily *family = data;

    g_free(family->reason);
    g_free(family);
}

/* Replaces each number, and each list of numbers, by '#'; caller frees. */
static char *
without_numbers(const char *reason)
{
    GString *text = g_string_new(NULL);

    for (const char *at = reason; *at != '\0'; at++) {
        if (!g_ascii_isdigit(*at)) {
            g_string_append_c(text, *at);
            continue;
        }
        if (g_str_has_suffix(text->str, "#, "))
            g_string_truncate(text, text->len - strlen(", "));
        if (!g_str_has_suffix(text->str, "#"))
            g_string_append_c(text, '#');
    }
    return g_string_free(text, FALSE);
}

static int
by_points(gconstpointer a, gconstpointer b)
{
    const LhPlanFamily *x = *(LhPlanFamily *const *)a, *y = *(LhPlanFamily *const *)b;

    return x->points != y->points ? (x->points > y->points ? -1 : 1) : strcmp(x->reason, y->reason);
}

GPtrArray *
lh_plan_refusals(const LhPlanSearch *search)
{
    g_autoptr(GHashTable) found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *families = g_ptr_array_new_with_free_func(family_free);

    for (guint i = 0; i < search->space->points->len; i++) {
        const LhPlanOutcome *outcome = &search->outcomes[i];
        g_autofree char *key = NULL;
        LhPlanFamily *family;

        if (outcome->state != LH_POINT_REFUSED)
            continue;
        key = without_numbers(outcome->reason);
        family = g_hash_table_lookup(found, key);
        if (family == NULL) {
            family = g_new0(LhPlanFamily, 1);
            family->reason = g_strdup(outcome->reason);
            g_ptr_array_add(families, family);
            g_hash_table_insert(found, g_steal_pointer(&key), family);
        }
        family->points++;
    }
    g_ptr_array_sort(families, by_points);
    return families;
}

/* ---- spaces ---- */

static void
cluster_free(gpointer data)
{
    LhPlanCluster *cluster = data;

    lh_plan_search_free(cluster->search);
    lh_plan_space_free(cluster->space);
    g_ptr_array_unref(cluster->ways);
    lh_bottleneck_free(cluster->bound);
    lh_reliefs_free(cluster->reliefs);
    lh_baseline_config_free(cluster->start);
    lh_plan_fit_free(cluster->fit);
    g_free(cluster);
}

static const LhScenario *
asked_scenario(const Plan *plan)
{
    return plan->longest != NULL ? plan->longest : plan->query->scenario;
}

/* Threads for setting up spaces. */
static guint
threads_of(const LhPlanQuery *query)
{
    return query->task.jobs > 0 ? query->task.jobs : g_get_num_processors();
}

/* The space of @scenario. */
static LhPlanSpace *
new_space(const Plan *plan, const LhScenario *scenario, const char *cluster, GError **error)
{
    LhPlanSpace *space = lh_plan_space_new(scenario, cluster, plan->query->sequences,
                                           threads_of(plan->query), error);

    if (space != NULL)
        space->remedies = plan->query->remedies;
    return space;
}

/* The next number of GPUs after @gpus to try: 1, 2, 4, ... within a host, then whole hosts of a
 * node, then whole nodes. */
static uint32_t
next_size(uint32_t gpus, const LhTopology *topology)
{
    const uint32_t node = (uint32_t)topology->gpus_per_node;
    const uint32_t host = (uint32_t)lh_topology_gpus_per_host(topology);

    if (gpus < host)
        return MIN(2 * gpus, host);
    return gpus + (gpus < node ? host : node);
}

/* Sets the scenario to @gpus GPUs of the topology. */
static void
resize(LhScenario *scenario, const LhTopology *topology, const char *name, uint32_t gpus)
{
    const uint64_t nodes = (gpus + topology->gpus_per_node - 1) / topology->gpus_per_node;
    g_autofree char *cluster = g_strdup_printf("%s:%" PRIu64, name, nodes);
    g_autofree char *ranks = g_strdup_printf("%u", gpus);

    lh_scenario_replace(scenario, "cluster", cluster);
    lh_scenario_replace(scenario, "ranks", ranks);
}

/* The space on @gpus GPUs if some point fits; NULL without error if none does. */
static LhPlanSpace *
fitting_space(const Plan *plan, const LhScenario *scenario, uint32_t gpus, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, &cause);
    g_autoptr(LhPlanSpace) space = NULL;

    if (setup != NULL && lh_plan_is_hopeless(setup, gpus))
        return NULL;
    if (setup != NULL)
        space = new_space(plan, scenario, NULL, &cause);
    if (space != NULL &&
        lh_plan_find_fitting(space, lh_plan_threads(plan->query->task.jobs, space)) != G_MAXUINT)
        return g_steal_pointer(&space);
    /* The given sizes may not divide every number of GPUs. */
    if (cause != NULL && cause->code != LH_ERROR_NO && gpus == 1)
        g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

/* The space on the fewest GPUs of @name on which some point fits. */
static LhPlanSpace *
smallest_space(Plan *plan, const char *name, guint *tried, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_copy(asked_scenario(plan));
    g_autoptr(LhTopology) topology = lh_topology_load(name, error);
    g_autoptr(GError) cause = NULL;
    uint32_t node;
    uint64_t most;

    if (topology == NULL)
        return NULL;
    lh_scenario_replace(scenario, "step", NULL);
    node = (uint32_t)topology->gpus_per_node;
    most = (topology->max_nodes > 0 ? MIN(topology->max_nodes, NODES_SOUGHT) : NODES_SOUGHT) * node;
    for (uint32_t gpus = 1; gpus <= most && cause == NULL; gpus = next_size(gpus, topology)) {
        LhPlanSpace *space;

        if (!report_plan(plan, &(LhProgress){ 0 })) {
            fail_interrupted("the smallest number of GPUs", name, error);
            return NULL;
        }
        resize(scenario, topology, name, gpus);
        space = fitting_space(plan, scenario, gpus, &cause);
        if (space != NULL)
            return space;
        ++*tried;
    }
    if (cause != NULL)
        g_propagate_error(error, g_steal_pointer(&cause));
    else
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "the step does not fit in memory on any number of GPUs of %s up to %" PRIu64,
                    name, most);
    return NULL;
}

static bool
add_cluster(Plan *plan, const char *name, GError **error)
{
    guint tried = 0;
    LhPlanSpace *space = plan->query->smallest ? smallest_space(plan, name, &tried, error)
                                               : new_space(plan, asked_scenario(plan), name, error);
    LhPlanCluster *cluster;

    if (space == NULL)
        return false;
    cluster = g_new0(LhPlanCluster, 1);
    cluster->space = space;
    cluster->sizes_tried = tried;
    cluster->ways = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(plan->answer->clusters, cluster);
    return true;
}

static bool
add_clusters(Plan *plan, GError **error)
{
    const GPtrArray *names = plan->query->clusters;

    if (names == NULL)
        return add_cluster(plan, plan->query->scenario->cluster, error);
    for (guint i = 0; i < names->len; i++) {
        if (!add_cluster(plan, g_ptr_array_index(names, i), error))
            return false;
    }
    return true;
}

/* ---- the longest sequence ---- */

static bool
find_longest(Plan *plan, GError **error)
{
    LhPlanCluster *cluster = g_ptr_array_index(plan->answer->clusters, 0);
    LhPlanLongest *longest = &plan->answer->longest;
    const LhTask task = task_on(plan, cluster->space);
    g_autofree char *tokens = NULL;
    LhPlanSpace *space;

    if (!lh_plan_longest(cluster->space, &task, longest, error))
        return plan->interrupted && (error == NULL || *error == NULL)
                   ? fail_interrupted("the longest sequence", cluster->space->cluster, error)
                   : false;
    tokens = g_strdup_printf("%" PRIu64, longest->tokens);
    plan->longest = lh_scenario_copy(plan->query->scenario);
    lh_scenario_replace(plan->longest, "seq_length", tokens);
    space = new_space(
        plan, plan->longest,
        plan->query->clusters != NULL ? g_ptr_array_index(plan->query->clusters, 0) : NULL, error);
    if (space == NULL)
        return false;
    lh_plan_space_free(cluster->space);
    cluster->space = space;
    return true;
}

/* ---- the hash of the query ---- */

/* Hash of everything that the points and their order depend on. */
static char *
plan_sha256(const Plan *plan)
{
    const LhPlanQuery *q = plan->query;
    g_autoptr(GString) text = g_string_new(LH_VERSION "\n");

    for (guint i = 0; i < plan->answer->clusters->len; i++) {
        const LhPlanCluster *cluster = g_ptr_array_index(plan->answer->clusters, i);
        const GPtrArray *inputs = cluster->space->setup->inputs;

        lh_scenario_lines(cluster->space->scenario, text);
        for (guint k = 0; k < inputs->len; k++) {
            const LhInput *input = g_ptr_array_index(inputs, k);

            g_string_append_printf(text, "%s %s\n", input->path, input->sha256);
        }
    }
    g_string_append_printf(text, "%" PRIu64 " %u %d %u %d\n", q->sequences, q->top, q->front,
                           LH_PLAN_ROUND, q->remedies);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- searches ---- */

/* Finds the bottleneck of the fastest configuration. */
static void
find_bound(Plan *plan, LhPlanCluster *cluster)
{
    const LhTask task = task_on(plan, cluster->space);
    const LhPlanWay *way = lh_plan_best_way(cluster);
    g_autoptr(LhProgram) program = NULL;
    LhPlanCase c;

    if (way == NULL || !lh_plan_case_init(&c, cluster->space, way->point, NULL))
        return;
    program = lh_plan_case_program(&c, NULL);
    cluster->bound = lh_bottleneck_find(&c.setup, program, &task);
    if (plan->interrupted)
        g_clear_pointer(&cluster->bound, lh_bottleneck_free);
}

/* Finds what would help if nothing fits, for the point that needs least memory; prefers points with
 * the default arrangement (variant 0). */
static void
find_reliefs(Plan *plan, LhPlanCluster *cluster)
{
    const LhTask task = task_on(plan, cluster->space);
    const GArray *misses = cluster->search->misses;
    g_autoptr(LhScenario) s = NULL;

    if (cluster->ways->len > 0 || misses->len == 0)
        return;
    cluster->relieved = g_array_index(misses, guint, 0);
    for (guint i = misses->len; i-- > 0;) {
        const guint point = g_array_index(misses, guint, i);

        if (lh_plan_point(cluster->space, point)->variant == 0)
            cluster->relieved = point;
    }
    s = lh_plan_point_scenario(cluster->space, cluster->relieved);
    if (s != NULL)
        cluster->reliefs = lh_reliefs_of(s, &task);
}

static bool
search_cluster(Plan *plan, LhPlanCluster *cluster, GError **error)
{
    const LhPlanQuery *q = plan->query;
    const LhPlanSearchOptions options = {
        .top = q->top,
        .front = q->front,
        .task = { .jobs = q->task.jobs, .progress = report_plan, .data = plan },
        .memory = lh_search_log_memory(plan->points),
        .processes = plan->processes.count > 1 ? &plan->processes : NULL
    };

    cluster->interrupted = plan->interrupted;
    if (plan->interrupted)
        return true;
    cluster->search = lh_plan_search(cluster->space, &options);
    if (lh_plan_search_needs_types(cluster->search)) {
        lh_plan_search_free(cluster->search);
        cluster->space->types = true;
        cluster->search = lh_plan_search(cluster->space, &options);
    }
    if (cluster->search->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&cluster->search->failure));
        return false;
    }
    cluster->interrupted = cluster->search->interrupted;
    plan->interrupted = cluster->interrupted;
    add_ways(cluster, q->top);
    return true;
}

/* Finds what has to be turned on. */
static void
find_fit(Plan *plan, LhPlanCluster *cluster)
{
    const LhPlanWay *way = lh_plan_best_way(cluster);
    const LhTask task = task_on(plan, cluster->space);

    cluster->fit = lh_plan_fit_of(cluster->search, way != NULL ? way->point : G_MAXUINT,
                                  plan->query->fit, &task);
    if (plan->interrupted)
        g_clear_pointer(&cluster->fit, lh_plan_fit_free);
}

/* Completes the answer for a cluster. */
static void
finish_cluster(Plan *plan, guint index)
{
    LhPlanAnswer *a = plan->answer;
    LhPlanCluster *cluster = g_ptr_array_index(a->clusters, index);

    if (!plan->interrupted && cluster->space->setup->cost == LH_COST_DEVICE)
        find_bound(plan, cluster);
    if (!plan->interrupted)
        find_reliefs(plan, cluster);
    if (!plan->interrupted)
        find_fit(plan, cluster);
    if (!plan->interrupted && plan->query->config != NULL)
        cluster->start = lh_baseline_config_new(plan->query->config, cluster->space);
    if (plan->query->finished != NULL)
        plan->query->finished(plan->query->finished_data, a, index);
}

/* ---- several processes ---- */

/* Opens the processes and checks that all have the same query. If one was interrupted, all are. */
static bool
meet(Plan *plan, GError **error)
{
    LhProcesses *processes = &plan->processes;
    g_autofree double *interrupted = NULL;

    plan->answer->first = true;
    if (plan->query->control == NULL)
        return true;
    if (!lh_processes_open(processes, plan->query->control, plan->query->deadline_us, error) ||
        !lh_processes_agree(processes, "question", plan->answer->query_sha256, error))
        return false;
    interrupted = g_new(double, processes->count);
    if (!lh_processes_gather(processes, plan->interrupted, interrupted, error))
        return false;
    for (uint32_t r = 0; r < processes->count; r++)
        plan->interrupted = plan->interrupted || interrupted[r] > 0;
    plan->answer->first = lh_processes_first(processes);
    return true;
}

static guint
best_cluster(const GPtrArray *clusters)
{
    guint best = G_MAXUINT;
    double most = 0;

    for (guint i = 0; i < clusters->len; i++) {
        const LhPlanWay *way = lh_plan_best_way(g_ptr_array_index(clusters, i));

        if (way != NULL && way->tokens_per_s > most) {
            most = way->tokens_per_s;
            best = i;
        }
    }
    return best;
}

static bool
answer(Plan *plan, GError **error)
{
    LhPlanAnswer *a = plan->answer;
    bool together;

    if (!add_clusters(plan, error) || (plan->query->longest && !find_longest(plan, error)))
        return false;
    a->query_sha256 = plan_sha256(plan);
    if (!meet(plan, error))
        return false;
    /* Searches must not wait for extras that only one process computes. */
    together = plan->processes.count > 1;
    if (plan->query->points_file != NULL && a->first) {
        plan->points = lh_search_log_open(plan->query->points_file, a->query_sha256, error);
        if (plan->points == NULL)
            return false;
    }
    for (guint i = 0; i < a->clusters->len; i++) {
        if (!search_cluster(plan, g_ptr_array_index(a->clusters, i), error))
            return false;
        if (!together)
            finish_cluster(plan, i);
    }
    for (guint i = 0; i < a->clusters->len && together && a->first; i++)
        finish_cluster(plan, i);
    a->best = best_cluster(a->clusters);
    return lh_search_log_close(g_steal_pointer(&plan->points), error);
}

LhPlanAnswer *
lh_plan(const LhPlanQuery *query, GError **error)
{
    g_autoptr(LhPlanAnswer) a = g_new0(LhPlanAnswer, 1);
    Plan plan = { .query = query, .answer = a };
    bool answered;

    lh_memory_keep_freed(); /* estimates make and free a hundred thousand programs */
    a->clusters = g_ptr_array_new_with_free_func(cluster_free);
    a->best = G_MAXUINT;
    answered = answer(&plan, error);
    a->interrupted = plan.interrupted;
    lh_scenario_free(plan.longest);
    lh_search_log_free(plan.points);
    lh_processes_close(&plan.processes);
    return answered ? g_steal_pointer(&a) : NULL;
}

void
lh_plan_answer_free(LhPlanAnswer *answer)
{
    if (answer == NULL)
        return;
    g_clear_pointer(&answer->clusters, g_ptr_array_unref);
    g_free(answer->query_sha256);
    g_free(answer);
}
