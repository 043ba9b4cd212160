/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a single operation is that of the topology's rows, of NCCL's model and of the
 * simulator, each queried separately; its links are those of the lower bound; and every parameter
 * of a topology is a number of its file.
 */
#include "base/rng.h"
#include "collective_check/collective_time.h"
#include "measure/measure_collective.h"
#include "papers/paper_collective.h"
#include "run_tests.h"
#include "scenario/setup_simulate.h"
#include "share.h"

#include <math.h>
#include <string.h>

#define SIZES 5
#define ROUNDED 1.1 /* interpolation between numbers of GPUs */

static LhScenario *
scenario_of(const char *cluster, uint32_t nodes, const char *collectives)
{
    LhScenario *s = lh_scenario_new();
    g_autofree char *text = g_strdup_printf("%s:%u", cluster, nodes);

    lh_scenario_replace(s, "cluster", text);
    lh_scenario_replace(s, "collectives", collectives);
    return s;
}

/* Names of topologies/. Caller frees. */
static GPtrArray *
shipped(void)
{
    g_autofree char *folder = g_build_filename(g_getenv("LONGHAUL_DATA_DIR"), "topologies", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    ck_assert(dir != NULL);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
        if (g_str_has_suffix(name, ".json"))
            g_ptr_array_add(names, g_strndup(name, strlen(name) - strlen(".json")));
    }
    return names;
}

static uint64_t
size_of(const LhNcclTest *s, int i)
{
    return (UINT64_C(1024) << (5 * i)) / s->ranks * s->ranks;
}

/* Compares with the prediction of `reproduce`. */
static void
check_reproduced(const LhNcclTest *s, const char *cluster)
{
    for (int i = 0; i < SIZES; i++) {
        g_autofree char *sized = g_strdup_printf("%s:%u", cluster, s->setup->network.nodes);
        const LhPaperCollective c = { .cluster = sized,
                                      .ranks = s->ranks,
                                      .bytes = size_of(s, i),
                                      .kind = (LhCollectiveKind)s->op->kind };
        LhNcclTestTime time;
        double seconds, bar;

        ck_assert(lh_nccl_test_time(s, c.bytes, &time, NULL));
        if (!lh_paper_collective_seconds(&c, false, &seconds, &bar, NULL))
            continue; /* all-to-alls over several nodes have no formula */
        ck_assert_msg(fabs(time.seconds - seconds) < 1.5e-12, "%s on %s: %.15g and %.15g s",
                      s->op->name, sized, time.seconds, seconds);
        ck_assert(time.error == bar);
    }
}

typedef struct {
    GArray *records;
} Sink;

static void
collect_single(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

/* Compares with a simulated program that calls the operation several times. */
static void
check_simulated(const LhNcclTest *s)
{
    const uint64_t bytes = size_of(s, 3);
    const LhCollectiveProbe probe = { .ranks = (uint32_t)s->ranks,
                                      .kind = (LhCollectiveKind)s->op->kind,
                                      .members = (uint32_t)s->ranks,
                                      .shard_bytes = bytes / s->ranks };
    g_autoptr(LhProgram) program = lh_collective_program(&probe);
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhHooks hooks = { .timeline = collect_single, .timeline_data = records };
    g_autoptr(LhSimResult) result = lh_setup_simulate(s->setup, program, NULL, NULL, &hooks, NULL);
    LhNcclTestTime time;

    ck_assert(result != NULL && lh_nccl_test_time(s, bytes, &time, NULL));
    g_array_sort(records, lh_timeline_by_rank_and_op);
    ck_assert_msg(fabs(time.seconds - lh_collective_seconds(&probe, records)) < 2e-9 * time.seconds,
                  "%s: %.15g and %.15g s", s->op->name, time.seconds,
                  lh_collective_seconds(&probe, records));
}

static void
check_everywhere(const char *cluster, uint32_t nodes, const char *collectives)
{
    g_autoptr(LhScenario) scenario = scenario_of(cluster, nodes, collectives);

    for (const LhNcclTestOp *op = lh_nccl_test_ops; op->kind < LH_NCCL_TEST_SENDS; op++) {
        g_autoptr(LhNcclTest) s = lh_nccl_test_new(scenario, op, (LhNcclTestPlace){ 0, 0 }, NULL);

        if (s == NULL || s->ranks > 72)
            continue;
        if (strcmp(collectives, "nccl") == 0)
            check_reproduced(s, cluster);
        if (op->kind != LH_COLL_BROADCAST) /* the probe's broadcast has the same number of parts */
            check_simulated(s);
    }
}

START_TEST(times_are_those_of_others)
{
    static const char *const ways[] = { "nccl", "auto", "ring", "direct", NULL };
    g_autoptr(GPtrArray) names = shipped();

    for (guint i = 0; i < names->len; i++) {
        for (int way = 0; ways[way] != NULL; way++) {
            if (test_is_short() && (i + (guint)way) % 5 != 0)
                continue;
            check_everywhere(g_ptr_array_index(names, i), 1, ways[way]);
            check_everywhere(g_ptr_array_index(names, i), 2, ways[way]);
        }
    }
}
END_TEST

/* @of_pair: the limit of a pair of GPUs is below the rate of every link. */
static double
largest_load(GArray *loads, bool *of_pair)
{
    const double largest = g_array_index(loads, LhLinkLoad, 0).s_per_byte;

    *of_pair = g_array_index(loads, LhLinkLoad, 0).link == LH_LINK_OF_PAIR;

    for (guint i = 1; i < loads->len; i++)
        ck_assert(g_array_index(loads, LhLinkLoad, i).s_per_byte <=
                  g_array_index(loads, LhLinkLoad, i - 1).s_per_byte);
    g_array_unref(loads);
    return largest;
}

/* The lower bound is that of the most loaded link, and no prediction is below it, up to the
 * rounding of rates and times. */
static void
check_loads(const char *cluster, uint32_t nodes, LhNcclTestPlace place)
{
    g_autoptr(LhScenario) scenario = scenario_of(cluster, nodes, "nccl");

    for (const LhNcclTestOp *op = lh_nccl_test_ops; op->name != NULL; op++) {
        g_autoptr(LhNcclTest) s = lh_nccl_test_new(scenario, op, place, NULL);
        const double bytes = 1e9;
        LhNcclTestTime time;
        double largest, bound;
        bool of_pair;

        if (s == NULL || s->ranks > 72)
            continue;
        largest = largest_load(lh_nccl_test_loads(s), &of_pair);
        ck_assert(lh_nccl_test_time(s, (uint64_t)bytes, &time, NULL));
        ck_assert_msg(time.seconds * ROUNDED > largest * bytes, "%s on %s takes %g s of %g",
                      op->name, cluster, time.seconds, largest * bytes);
        if (op->kind == LH_NCCL_TEST_SENDS)
            continue;
        bound = lh_link_bound_s_per_byte(&s->setup->network, &s->group, (LhCollectiveKind)op->kind,
                                         lh_nccl_test_is_nvls(s) ? LH_ALGORITHM_NVLS
                                                                 : LH_ALGORITHM_DEFAULT);
        ck_assert(largest > bound * (1 - 1e-12));
        ck_assert_msg(of_pair || fabs(largest / bound - 1) < 1e-12, "%s on %s: %g, not %g",
                      op->name, cluster, largest, bound);
    }
}

START_TEST(loads_are_the_bound)
{
    g_autoptr(GPtrArray) names = shipped();

    for (guint i = 0; i < names->len; i++) {
        for (uint32_t nodes = 1; nodes <= 4; nodes++) {
            check_loads(g_ptr_array_index(names, i), nodes, (LhNcclTestPlace){ 0, 0 });
            check_loads(g_ptr_array_index(names, i), nodes, (LhNcclTestPlace){ 0, 2 });
            check_loads(g_ptr_array_index(names, i), nodes, (LhNcclTestPlace){ 4, 0 });
        }
    }
}
END_TEST

/* The text of the file with @value at the parameter's path; NULL if the path is absent. @from is
 * the start of an object. */
static char *
edit(const char *text, const char *path, const char *value)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    const char *at = text, *end;
    GString *edited;

    for (guint i = 0; keys[i] != NULL; i++) {
        g_auto(GStrv) name = g_strsplit(keys[i], "[", 2);
        g_autofree char *key = g_strdup_printf("\"%s\":", name[0]);
        const guint64 element = name[1] != NULL ? g_ascii_strtoull(name[1], NULL, 10) + 1 : 0;

        at = strstr(at, key);
        if (at == NULL)
            return NULL;
        at += strlen(key);
        for (guint64 k = 0; k < element && at != NULL; k++)
            at = strchr(at + 1, '{');
        if (at == NULL)
            return NULL;
    }
    end = at + strcspn(at, ",}\n");
    edited = g_string_new_len(text, at - text);
    g_string_append_printf(edited, " %s%s", value, end);
    return g_string_free(edited, FALSE);
}

static char *
text_of(const LhLever *lever, double value)
{
    if (lever->kind == LH_LEVER_RATE)
        return g_strdup_printf("\"%.0fB/s\"", value);
    if (lever->kind == LH_LEVER_LATENCY)
        return g_strdup_printf("\"%.0fps\"", value * (double)LH_PS_PER_S);
    return g_strdup_printf("%.17g", value);
}

/* Changing a parameter is the same as editing its number in the file. Limits of pairs are
 * changed first if they must not exceed the parameter. */
START_TEST(levers_are_numbers_of_the_file)
{
    g_autoptr(GPtrArray) names = shipped();
    guint turned = 0;

    for (guint i = 0; i < names->len; i++) {
        g_autoptr(LhTopology) t = lh_topology_load(g_ptr_array_index(names, i), NULL);
        g_autofree char *file =
            g_strdup_printf("%s/topologies/%s.json", g_getenv("LONGHAUL_DATA_DIR"),
                            (char *)g_ptr_array_index(names, i));
        g_autoptr(GPtrArray) levers = lh_topology_levers(t);
        g_autofree char *text = NULL;

        ck_assert(g_file_get_contents(file, &text, NULL, NULL));
        for (guint k = 0; k < levers->len; k++) {
            const LhLever *lever = g_ptr_array_index(levers, k);
            LhTopology changed = *t;
            g_autofree char *value = NULL, *edited = NULL;
            g_autoptr(LhTopology) typed = NULL;
            g_autoptr(GError) error = NULL;

            lh_lever_scale(&changed, lever, lever->kind == LH_LEVER_SHARE ? 0.5 : 1.5);
            ck_assert((lh_lever_value(&changed, lever) > lh_lever_value(t, lever)) ==
                      (lever->kind != LH_LEVER_LATENCY));
            value = text_of(lever, lh_lever_value(&changed, lever));
            edited = edit(text, lever->path, value);
            ck_assert_msg(edited != NULL, "%s: no %s", file, lever->path);
            typed = lh_topology_parse(file, edited, strlen(edited), &error);
            if (typed == NULL) /* a limit above the rate of its link, or measured rows of other
                                * links */
                continue;
            turned++;
            ck_assert_msg(lh_lever_value(typed, lever) == lh_lever_value(&changed, lever),
                          "%s: %s is %.17g, not %.17g", file, lever->path,
                          lh_lever_value(typed, lever), lh_lever_value(&changed, lever));
            for (const LhLever *other = lh_levers; other->path != NULL; other++)
                ck_assert(other->offset == lever->offset ||
                          lh_lever_value(typed, other) == lh_lever_value(t, other));
        }
    }
    ck_assert_uint_gt(turned, 100);
}
END_TEST

/* Ranks on hosts of one NVLink domain communicate over NVLink. */
START_TEST(hosts_of_a_domain_are_one_node)
{
    static const struct {
        const char *cluster;
        LhNcclTestPlace place;
        uint64_t nodes, second_host;
    } cases[] = {
        { "nvl72:1", { .ranks = 8, .per_host = 4 }, 1, 4 },
        { "nvl72:1", { .ranks = 36, .per_host = 2 }, 1, 4 },
        { "nvl72:2", { .ranks = 76, .per_host = 4 }, 2, 4 },
        { "hgx-h100:2", { .ranks = 8, .per_host = 4 }, 2, 8 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhNcclTest) s = NULL;
        g_autoptr(GError) error = NULL;

        lh_scenario_replace(scenario, "cluster", cases[i].cluster);
        s = lh_nccl_test_new(scenario, lh_nccl_test_op_find("all_reduce", NULL), cases[i].place,
                             &error);
        ck_assert_msg(s != NULL, "%s", error != NULL ? error->message : "");
        ck_assert_uint_eq(s->nodes, cases[i].nodes);
        ck_assert_uint_eq(lh_group_size(&s->group), cases[i].place.ranks);
        ck_assert_uint_eq(lh_group_member(&s->group, cases[i].place.per_host),
                          cases[i].second_host);
    }
}
END_TEST

START_TEST(hosts_have_so_many_gpus)
{
    const LhNcclTestPlace five = { .ranks = 10, .per_host = 5 };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) error = NULL;

    lh_scenario_replace(scenario, "cluster", "nvl72:1");
    ck_assert_ptr_null(
        lh_nccl_test_new(scenario, lh_nccl_test_op_find("all_reduce", NULL), five, &error));
    ck_assert_msg(strstr(error->message, "5 ranks per host; nvl72 has 4 GPUs in each") != NULL,
                  "%s", error->message);
}
END_TEST

START_TEST(names_are_those_of_nccl_tests_and_longhaul)
{
    g_autoptr(GError) error = NULL;

    for (const LhNcclTestOp *op = lh_nccl_test_ops; op->name != NULL; op++) {
        g_autofree char *program = g_strconcat(op->name, "_perf", NULL);

        ck_assert_str_eq(op->name, lh_nccl_test_op_names[op - lh_nccl_test_ops]);
        ck_assert_ptr_eq(lh_nccl_test_op_find(op->name, NULL), op);
        ck_assert_ptr_eq(lh_nccl_test_op_find(program, NULL), op);
        if (op->own == NULL)
            continue;
        ck_assert_ptr_eq(lh_nccl_test_op_find(op->own, NULL), op);
        ck_assert_str_eq(op->own, lh_collective_names[op->kind]);
    }
    ck_assert(lh_nccl_test_op_find("all_reduce_per", &error) == NULL);
    ck_assert(strstr(error->message, "did you mean all_reduce?") != NULL);
    g_clear_error(&error);
    ck_assert(lh_nccl_test_op_find("", &error) == NULL);
}
END_TEST

/* doc/PERFORMANCE.md of nccl-tests. */
START_TEST(bus_shares_are_those_of_nccl_tests)
{
    static const double shares[] = { 2 * 7.0 / 8, 7.0 / 8, 7.0 / 8, 7.0 / 8, 1, 1 };

    for (guint i = 0; lh_nccl_test_ops[i].name != NULL; i++)
        ck_assert(lh_nccl_test_bus_share(&lh_nccl_test_ops[i], 8) == shares[i]);
    ck_assert_uint_eq(lh_nccl_test_bytes(&lh_nccl_test_ops[0], 8, 1000), 1000);
    ck_assert_uint_eq(lh_nccl_test_bytes(&lh_nccl_test_ops[1], 8, 1000), 896);
    ck_assert_uint_eq(lh_nccl_test_bytes(&lh_nccl_test_ops[3], 8, 1000), 992);
    ck_assert_uint_eq(lh_nccl_test_bytes(&lh_nccl_test_ops[1], 8, 127), 0);
}
END_TEST

LH_TEST_MAIN("single", hosts_of_a_domain_are_one_node, hosts_have_so_many_gpus,
             times_are_those_of_others, loads_are_the_bound, levers_are_numbers_of_the_file,
             names_are_those_of_nccl_tests_and_longhaul, bus_shares_are_those_of_nccl_tests)
