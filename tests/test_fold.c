/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: a folded step has the results of the same step simulated rank by rank, to the
 * picosecond, on every network that permits folding; a step whose ranks differ is not folded.
 */
#include "scenario/setup_step.h"
#include "share.h"
#include "step_results.h"

#include <glib/gstdio.h>

#define SHARING 8 /* one case in this many is also simulated with cores shared by ranks */

/* Asserts that the critical path spans the whole run. */
static void
check_path(const LhSimResult *r)
{
    LhTime end_ps = 0;

    for (guint i = 0; i < r->path->len; i++) {
        const LhPathStep *step = &g_array_index(r->path, LhPathStep, i);

        ck_assert_int_eq(step->from_ps, end_ps);
        end_ps = step->to_ps;
    }
    ck_assert_int_eq(end_ps, r->makespan_ps);
}

/* A third of all ops are faster: the same ones on all ranks. */
static double
faster(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    (void)data;
    (void)rank;
    (void)op;
    (void)buffer;
    return id % 3 == 0 ? 1 / 1.1 : 1;
}

/* Returns the share of ranks that were simulated; 0 if the step is rejected. @machine_ranks:
 * consecutive ranks that share half as many cores; 0: no sharing. */
static double
check(const char *members, bool path, uint64_t machine_ranks)
{
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    g_autoptr(LhProgram) program = NULL;
    double share = 0;

    if (setup != NULL)
        program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (program != NULL) {
        LhSimParams params = params_of(setup, program, path);
        LhDevice device = *setup->device;
        g_autoptr(GError) error = NULL;
        LhSymmetryGroups fold = { .kept = 0 };
        g_autoptr(LhSimResult) folded = NULL;
        g_autoptr(LhSimResult) again = NULL;
        g_autoptr(LhSimResult) whole = NULL;

        device.machine_ranks = machine_ranks;
        device.machine_cores = machine_ranks / 2;
        params.device = &device;
        if (!path) {
            params.time_share = faster;
            params.time_share_alike = true;
        }
        params.fold = &fold;
        folded = lh_simulate(&params, &error);
        if (folded != NULL && folded->path != NULL)
            check_path(folded);
        again = lh_simulate(&params, &error);
        params.unfolded = true;
        params.path = false;
        whole = lh_simulate(&params, &error);
        ck_assert_msg(whole != NULL && folded != NULL, "%s: %s", members,
                      error != NULL ? error->message : "");
        ck_assert_uint_eq(whole->simulated_ranks, whole->ranks_count);
        check_same(members, folded, whole);
        check_same(members, again, whole);
        ck_assert_uint_eq(again->simulated_ranks, folded->simulated_ranks);
        share = (double)folded->simulated_ranks / folded->ranks_count;
    }
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
    return share;
}

/* ---- cases ---- */

static char *
random_members(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m", "llama-3.1-405b-4l", "gpt3-1.3b", NULL };
    static const char *const clusters[] = { "hgx-h100",  "dgx-a100-80g",  "hgx-b200",
                                            "dfa-2node", "fat-tree-a100", "nvl72",
                                            NULL };
    static const char *const networks[] = { "fair", "fair", "fair", "alpha-beta", "fifo", NULL };
    static const char *const collectives[] = { "auto",        "fluid",       "fluid",
                                               "closed-form", "closed-form", "ring",
                                               "nccl",        "tree",        NULL };
    static const char *const shards[] = { "ddp", "zero1", "zero2", "fsdp", NULL };
    static const char *const checkpoints[] = { "none", "selective", "layer", "remat", NULL };
    static const char *const schedules[] = { "ring",   "zigzag",       "te-allgather",
                                             "te-a2a", "dfa-balanced", NULL };
    static const char *const frameworks[] = { "pytorch-fsdp", "megatron-lm", "deepspeed", NULL };
    static const uint32_t tensor[] = { 1, 2, 4, 4, 8, 8 }, context[] = { 1, 2, 4 };
    static const uint32_t data[] = { 1, 2, 4, 6 }, stages[] = { 1, 1, 2, 4 };
    const uint32_t t = number(tensor, G_N_ELEMENTS(tensor), seed, 1);
    const uint32_t c = number(context, G_N_ELEMENTS(context), seed, 2);
    const uint32_t d = number(data, G_N_ELEMENTS(data), seed, 3);
    const uint32_t p = number(stages, G_N_ELEMENTS(stages), seed, 4);
    const char *network = pick(networks, seed, 5), *cluster = pick(clusters, seed, 6);
    const uint32_t ranks = t * c * d * p, node = strcmp(cluster, "nvl72") == 0 ? 72 : 8;

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": \"4K\", "
        "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
        "\"num_micro_batches\": %u, \"network\": \"%s\", \"collectives\": \"%s\", "
        "\"shard\": \"%s\", \"checkpoint\": \"%s\", \"schedule\": [\"%s\"], \"framework\": \"%s\"",
        pick(models, seed, 7), cluster, (ranks + node - 1) / node, ranks, t, c, d, p,
        1 + (uint32_t)(lh_rng_bits(seed, 8, 0) % 3), network,
        strcmp(network, "fair") == 0 ? pick(collectives, seed, 9) : "ring", pick(shards, seed, 10),
        pick(checkpoints, seed, 11), pick(schedules, seed, 12), pick(frameworks, seed, 13));
}

START_TEST(folded_steps_are_whole_steps)
{
    const bool all = g_getenv("LONGHAUL_TEST_ALL") != NULL;
    const uint64_t cases = all ? 2000 : MAX(test_share(80), 8);
    uint64_t ran = 0, folded = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_members(seed);
        const double share = check(members, seed % 2 == 0, 0);

        ran += share > 0;
        folded += share > 0 && share < 1;
        if (seed % SHARING == 0 && share > 0)
            ck_assert_double_eq(check(members, false, 4), 1);
    }
    ck_assert_uint_gt(ran, cases / 2);
    ck_assert_uint_gt(folded, cases / 8);
}
END_TEST

/* Nodes of PCIe trees are equivalent; GPUs of one node are not. */
START_TEST(folded_trees_are_whole_trees)
{
    static const char box[] =
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"l20\", "
        "\"node\": {\"gpus\": 4, \"scale_up\": {\"kind\": \"none\"}, \"pcie\": {\"bandwidth\": "
        "\"24GB/s\", \"latency\": \"1us\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": "
        "\"s\", "
        "\"levels\": [{\"name\": \"socket\", \"of_gpu\": [0, 1, 0, 1], \"up\": \"9GB/s\", "
        "\"provenance\": \"assumed\", \"source\": \"s\"}], \"p2p\": \"none\", \"p2p_two\": true, "
        "\"host\": {\"per_gpu\": \"16GB/s\", \"bandwidth\": \"30GB/s\", \"provenance\": "
        "\"assumed\", "
        "\"source\": \"s\"}}, \"nics\": {\"count\": 2, \"bandwidth\": \"10GB/s\", \"latency\": "
        "\"5us\", "
        "\"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\"}}}";
    static const char *const collectives[] = { "auto", "fluid", "ring", "closed-form", "nccl" };
    g_autofree char *folder = g_dir_make_tmp("fold-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.json", NULL);
    unsigned folded = 0;

    ck_assert(g_file_set_contents(path, box, -1, NULL));
    for (guint i = 0; i < 3 * G_N_ELEMENTS(collectives); i++) {
        static const unsigned tensor[] = { 1, 2, 4 };
        const unsigned t = tensor[i % 3];
        g_autofree char *members = g_strdup_printf(
            "\"model\": \"gpt3-125m\", \"cluster\": \"%s:4\", \"ranks\": 16, \"seq_length\": "
            "\"4K\", "
            "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
            "\"data_parallel_size\": 4, \"collectives\": \"%s\", \"schedule\": [\"%s\"]",
            path, t, 4 / t, collectives[i / 3], i % 2 == 0 ? "zigzag" : "te-a2a");
        const double share = check(members, false, 0);

        folded += share > 0 && share < 1;
    }
    g_remove(path);
    g_rmdir(folder);
    ck_assert_uint_gt(folded, 5);
}
END_TEST

/* ---- NICs and trunks ---- */

/* A topology of eight-GPU NVSwitch nodes with the NICs @nics and, behind them, @rest. */
static char *
cluster_text(const char *nics, const char *rest)
{
    static const char link[] =
        "\"latency\": \"2us\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\"";

    return g_strdup_printf(
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"h100-sxm\", \"node\": {\"gpus\": 8, \"scale_up\": {\"kind\": \"nvswitch\", "
        "\"bandwidth\": \"300GB/s\", %s}, \"pcie\": {\"bandwidth\": \"40GB/s\", %s}, \"nics\": "
        "{%s, \"bandwidth\": \"20GB/s\", %s}}%s}",
        link, link, nics, link, rest);
}

/* Checks a step on @nodes nodes, @span of them per data-parallel rank; @i selects the tensor and
 * context parallelism. */
static double
check_on(const char *path, guint i, uint32_t nodes, uint32_t span)
{
    static const char *const collectives[] = { "auto", "fluid", "ring", "closed-form", "nccl" };
    static const unsigned tensor[] = { 8, 4, 2, 1 };
    const unsigned t = tensor[i % G_N_ELEMENTS(tensor)];
    g_autofree char *members = g_strdup_printf(
        "\"model\": \"gpt3-1.3b\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": "
        "\"4K\", \"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"collectives\": \"%s\", \"schedule\": [\"%s\"]",
        path, nodes, 8 * nodes, t, 8 * span / t, nodes / span,
        collectives[i % G_N_ELEMENTS(collectives)], i % 3 == 0 ? "te-a2a" : "zigzag");

    return check(members, false, 0);
}

#define TREE                                                                                       \
    ", \"fabric\": {\"kind\": \"fat-tree\", \"levels\": [{\"nodes\": 2, \"oversubscription\": "    \
    "2}, "                                                                                         \
    "{\"nodes\": 4, \"oversubscription\": 3}], \"switch_latency\": \"1us\"}"

START_TEST(folded_networks_are_whole_networks)
{
    static const struct {
        const char *nics, *rest;
        uint32_t nodes, span;
    } cases[] = {
        { "\"count\": 8, \"of_gpu\": [7, 6, 5, 4, 0, 1, 2, 3]", "", 4, 1 },
        { "\"count\": 8, \"of_gpu\": [7, 6, 5, 4, 0, 1, 2, 3]",
          ", \"fabric\": {\"kind\": \"rail\"}", 4, 1 },
        { "\"count\": 3", "", 4, 1 },
        { "\"count\": 4, \"of_gpu\": [0, 1, 2, 3, 0, 1, 2, 3]", "", 4, 1 },
        { "\"count\": 8", TREE, 8, 2 },
        { "\"count\": 5", TREE, 8, 4 },
        { "\"count\": 3, \"of_gpu\": [2, 0, 0, 1, 1, 0, 2, 0]",
          ", \"fabric\": {\"kind\": \"rail\"}", 4, 1 },
    };
    g_autofree char *folder = g_dir_make_tmp("fold-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.json", NULL);
    unsigned folded = 0;

    for (guint i = 0; i < 4 * G_N_ELEMENTS(cases); i++) {
        const guint c = i % G_N_ELEMENTS(cases);
        g_autofree char *text = cluster_text(cases[c].nics, cases[c].rest);
        double share;

        ck_assert(g_file_set_contents(path, text, -1, NULL));
        share = check_on(path, i, cases[c].nodes, cases[c].span);
        folded += share > 0 && share < 1;
    }
    g_remove(path);
    g_rmdir(folder);
    ck_assert_uint_gt(folded, G_N_ELEMENTS(cases));
}
END_TEST

LH_TEST_MAIN("fold", folded_steps_are_whole_steps, folded_trees_are_whole_trees,
             folded_networks_are_whole_networks)
