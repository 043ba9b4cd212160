/*
 * Layers and micro-batches that repeat: a step of which they are left out has the results of the
 * same step simulated op by op, to the picosecond.
 */
#include "share.h"
#include "step_results.h"

/* What share of its ops was left out, if a host takes so long to launch a kernel; -1: the step is
 * refused. */
static double
check(const char *members, LhTime launch_ps)
{
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    g_autoptr(LhProgram) program = NULL;
    double share = -1;

    if (setup != NULL)
        program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (program != NULL) {
        LhSimParams params = params_of(setup, program, false);
        LhDevice device = *setup->device;
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSimResult) skipping = NULL;
        g_autoptr(LhSimResult) whole = NULL;

        device.kernel_launch_ps = launch_ps;
        params.device = &device;
        skipping = lh_simulate(&params, &error);
        params.unskipped = true;
        whole = lh_simulate(&params, &error);
        ck_assert_msg(whole != NULL && skipping != NULL, "%s: %s", members,
                      error != NULL ? error->message : "");
        ck_assert_uint_eq(whole->skipped_ops, 0);
        check_same(members, skipping, whole);
        for (uint32_t r = 0; r < whole->ranks_count; r++)
            ck_assert_msg(memcmp(skipping->ranks[r].idle_ps, whole->ranks[r].idle_ps,
                                 sizeof(whole->ranks[r].idle_ps)) == 0,
                          "%s: what rank %u was idle for", members, r);
        share = (double)skipping->skipped_ops / (double)skipping->ops;
    }
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
    return share;
}

static char *
random_members(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m", "gpt3-1.3b", "llama-3-70b-12l",
                                          "qwen3-8b",  "llama-7b",  NULL };
    static const char *const clusters[] = { "hgx-h100",  "dgx-a100-80g",  "hgx-b200",
                                            "dfa-2node", "fat-tree-a100", "azure-nc96-a100",
                                            NULL };
    static const char *const networks[] = { "fair", "fair", "fair", "alpha-beta", "fifo", NULL };
    static const char *const collectives[] = { "auto", "fluid", "closed-form", "ring",
                                               "nccl", "tree",  NULL };
    static const char *const shards[] = { "ddp", "zero1", "zero2", "fsdp", "fsdp", NULL };
    static const char *const checkpoints[] = { "none", "selective", "layer", "remat", NULL };
    static const char *const schedules[] = { "ring",          "zigzag",  "te-allgather", "te-a2a",
                                             "dfa-balanced",  "ulysses", "te-p2p",       "usp",
                                             "attention2d-o", "lasp2",   "tokenring",    NULL };
    static const char *const frameworks[] = { "pytorch-fsdp", "megatron-lm", "deepspeed", NULL };
    static const uint32_t tensor[] = { 1, 1, 2, 4, 8 }, context[] = { 1, 2, 4, 4, 8 };
    static const uint32_t data[] = { 1, 1, 2, 4, 6 }, stages[] = { 1, 1, 1, 2, 3 };
    static const uint32_t micro_batches[] = { 1, 1, 2, 3, 9, 16 };
    const uint32_t t = number(tensor, G_N_ELEMENTS(tensor), seed, 1);
    const uint32_t c = number(context, G_N_ELEMENTS(context), seed, 2);
    const uint32_t d = number(data, G_N_ELEMENTS(data), seed, 3);
    const uint32_t p = number(stages, G_N_ELEMENTS(stages), seed, 4);
    const char *network = pick(networks, seed, 5), *cluster = pick(clusters, seed, 6);
    const uint32_t ranks = t * c * d * p;
    const bool slow = lh_rng_bits(seed, 14, 0) % 8 == 0;

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": \"%s\", "
        "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
        "\"num_micro_batches\": %u, \"network\": \"%s\", \"collectives\": \"%s\", "
        "\"shard\": \"%s\", \"checkpoint\": \"%s\", \"schedule\": [\"%s\"], \"framework\": "
        "\"%s\"%s",
        pick(models, seed, 7), cluster, (ranks + 1) / 2, ranks,
        lh_rng_bits(seed, 15, 0) % 2 == 0 ? "4K" : "32K", t, c, d, p,
        number(micro_batches, G_N_ELEMENTS(micro_batches), seed, 8), network,
        strcmp(network, "fair") == 0 ? pick(collectives, seed, 9) : "ring", pick(shards, seed, 10),
        pick(checkpoints, seed, 11), pick(schedules, seed, 12), pick(frameworks, seed, 13),
        slow ? ", \"straggler\": [{\"rank\": 0, \"factor\": 1.7}]" : "");
}

/* Hosts are ahead of their devices, or just so, or not. */
START_TEST(steps_in_short_are_whole_steps)
{
    static const LhTime launches_ps[] = { 0, 4000000, 30000000, 100000000 };
    const bool all = g_getenv("LONGHAUL_TEST_ALL") != NULL;
    const uint64_t cases = all ? 2000 : test_share(60);
    uint64_t ran = 0, shorter = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_members(seed);
        const double share =
            check(members, launches_ps[lh_rng_bits(seed, 16, 0) % G_N_ELEMENTS(launches_ps)]);

        ran += share >= 0;
        shorter += share > 0;
    }
    ck_assert_uint_gt(ran, cases / 2);
    ck_assert_uint_ge(shorter, cases / 4);
}
END_TEST

/* The optimizer's kernels are short: devices wait for hosts there, as soon as what these were ahead
 * by is used up. */
START_TEST(hosts_are_as_far_ahead)
{
    static const char members[] =
        "\"model\": \"llama-3-70b\", \"cluster\": \"hgx-h100\", \"ranks\": 8, \"seq_length\": "
        "\"2K\", "
        "\"tensor_model_parallel_size\": \"8\", \"schedule\": [\"ring\"], \"shard\": \"ddp\"";
    double left_out = 0;

    for (LhTime launch_ps = 20000000; launch_ps < 120000000; launch_ps += launch_ps / 20)
        left_out += check(members, launch_ps);
    ck_assert_double_gt(left_out, 1);
}
END_TEST

LH_TEST_MAIN("repeat", steps_in_short_are_whole_steps, hosts_are_as_far_ahead)
