/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import of PCIe trees and of the NICs of GPUs from tool output: the tree, link rates by constants
 * and by runs, and notes on what nobody measured.
 */
#include "run_tests.h"
#include "told_files.h"

#include "import/cluster/pcie_tree.h"
#include "sim/network/link_bound.h"

/* Formats "0,0,1,1"; @numbers of uint64_t. */
static void
append_numbers(GString *text, const GArray *numbers)
{
    for (guint i = 0; i < numbers->len; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               g_array_index(numbers, uint64_t, i));
}

static void
append_rate(GString *text, double rate, int provenance)
{
    g_autofree char *shown = lh_format_bandwidth(rate);

    if (rate > 0)
        g_string_append_printf(text, " %s %s", shown, lh_provenance_names[provenance]);
}

/* Formats "24 GB/s datasheet | socket 4: 16 GB/s datasheet | p2p none, two | host 20 GB/s
 * datasheet | 2 NICs". */
static char *
describe(const LhTopology *t)
{
    GString *text = g_string_new("pcie");

    append_rate(text, t->pcie.bandwidth, t->pcie.from.provenance);
    for (guint i = 0; i < lh_pcie_levels_count(&t->tree); i++) {
        const LhPcieLevel *level = &g_array_index(t->tree.levels, LhPcieLevel, i);

        g_string_append_printf(text, " | %s ", level->name);
        if (level->of_gpu != NULL)
            append_numbers(text, level->of_gpu);
        else
            g_string_append_printf(text, "%" G_GUINT64_FORMAT, level->gpus);
        append_rate(text, level->up, level->from.provenance);
    }
    if (t->tree.p2p != NULL)
        g_string_append_printf(text, " | p2p %s%s", t->tree.p2p, t->tree.p2p_two ? ", two" : "");
    if (t->tree.memory_from.source != NULL) {
        g_string_append(text, " | host");
        append_rate(text, t->tree.per_gpu, t->tree.memory_from.provenance);
    }
    if (t->nics_per_node > 0)
        g_string_append_printf(text, " | %" G_GUINT64_FORMAT " NICs", t->nics_per_node);
    return g_string_free(text, FALSE);
}

/* --- files --------------------------------------------------------------------------------------
 */

#define LOGS "pcie-all_gather-8.txt", "pcie-all_reduce-4.txt", "pcie-alltoall-8.txt"

static const struct {
    const char *files[6];
    const char *base, *device, *made;
} trees[] = {
    { { "nccl-epyc-8.xml" },
      NULL,
      "l40s",
      "pcie 24 GB/s datasheet | socket 4 16 GB/s datasheet | p2p none, two | 2 NICs" },
    { { "nccl-plx-8.xml" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | switch 2 12 GB/s datasheet | socket 4 10 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 4 NICs" },
    /* One switch per socket: messages that leave it cross the link between sockets. */
    { { "nccl-cascade-8.xml" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | inner-switch 2 12 GB/s datasheet | switch 4 6 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 2 NICs" },
    /* Partitions of a switch are no separate switches. */
    { { "nccl-bcm-8.xml" },
      NULL,
      "l40s",
      "pcie 48 GB/s datasheet | switch 2 48 GB/s datasheet | socket 4 22 GB/s datasheet | p2p "
      "switch | host 40 GB/s datasheet | 4 NICs" },
    { { "nccl-no-family.xml" },
      NULL,
      "l40s",
      "pcie 24 GB/s datasheet | socket 2 | p2p none | host 20 GB/s datasheet" },
    { { "nccl-rtx-8.xml" },
      NULL,
      "rtx-pro-6000",
      "pcie 48 GB/s datasheet | socket 4 16 GB/s datasheet | p2p none, two" },
    /* Equal to topologies/pcie-rtx-pro-6000.json, from the same rows. */
    { { "nccl-rtx-8.xml", LOGS },
      NULL,
      "rtx-pro-6000",
      "pcie 48 GB/s datasheet | socket 4 42.05 GB/s fitted | p2p none, two | host 25.7 GB/s "
      "fitted" },
    { { "nccl-rtx-8.xml", LOGS, "pcie-all_gather-2.txt" },
      NULL,
      "rtx-pro-6000",
      "pcie 48 GB/s datasheet | socket 4 42.05 GB/s fitted | p2p none, two | host 25.7 GB/s "
      "fitted" },
    /* The base has the same structure and supplies what the matrix lacks. */
    { { "smi-epyc-8.txt" },
      "pcie4-2socket",
      NULL,
      "pcie 20 GB/s datasheet | socket 4 22 GB/s assumed | p2p none | host 20 GB/s datasheet" },
    { { "smi-cascade-8.txt" },
      "pcie4-2socket",
      NULL,
      "pcie 20 GB/s datasheet | switch 4 22 GB/s assumed | p2p switch" },
    { { "smi-plx-8.txt" },
      "pcie4-2socket",
      NULL,
      "pcie 20 GB/s datasheet | switch 2 | socket 4 22 GB/s assumed | p2p switch" },
    { { "smi-5.txt" },
      "pcie4-2socket",
      NULL,
      "pcie 20 GB/s datasheet | socket 0,1,1,1,1 | p2p none" },
    /* NVLink hides the PCIe path between two GPUs; affinities give it. */
    { { "smi-bridges.txt" },
      "azure-nc96-a100",
      NULL,
      "pcie 16 GB/s assumed | socket 2 | p2p none | 1 NICs" },
    /* Both files have the tree, one its rates. */
    { { "nccl-plx-8.xml", "smi-plx-8.txt" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | switch 2 12 GB/s datasheet | socket 4 10 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 4 NICs" },
    { { "smi-plx-8.txt", "nccl-plx-8.xml" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | switch 2 12 GB/s datasheet | socket 4 10 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 4 NICs" },
    /* A generic node with measured rates and no file of its tree. */
    { { LOGS },
      "pcie5-2socket",
      NULL,
      "pcie 40 GB/s datasheet | socket 4 42.05 GB/s fitted | p2p none | host 25.7 GB/s fitted" },
};

/* All links of the node, and of the tree that rows were measured on, can be simulated. */
static void
check_bounds(const LhTopology *t)
{
    const LhGroup group = { 0, 1, (uint32_t)t->gpus_per_node, 0, 1 };
    LhNetwork network;

    ck_assert(lh_network_init(&network, t, 1, (uint32_t)t->gpus_per_node, NULL, NULL));
    for (int kind = LH_COLL_ALL_GATHER; kind < LH_COLL_KINDS; kind++) {
        const double bound = lh_link_bound_s_per_byte(&network, &group, (LhCollectiveKind)kind,
                                                      LH_ALGORITHM_DEFAULT);

        ck_assert_msg(bound > 0 && bound < 1e-8, "%d: %g", kind, bound);
    }
}

/* Compares only the tree for matrices without a rate of NICs. */
static void
leave_nics_out(LhToolCluster *cluster)
{
    if (cluster->told[LH_TOOL_NIC_WIRE].known)
        return;
    cluster->told[LH_TOOL_NICS].known = cluster->told[LH_TOOL_NICS_JOINED].known = false;
}

START_TEST(makes_a_tree)
{
    g_autoptr(LhToolCluster) cluster = told_load(trees[_i].files);
    g_autofree char *made = NULL;
    g_autoptr(LhTopology) t = NULL;

    leave_nics_out(cluster);
    t = told_made_of(cluster, trees[_i].base, trees[_i].device);
    made = describe(t);
    ck_assert_str_eq(made, trees[_i].made);
    check_bounds(t);
}
END_TEST

/* NCCL's rate between sockets, by CPU. */
static const struct {
    LhToolCpu cpu;
    double gbps;
} sockets[] = {
    { { "x86_64", "GenuineIntel", true, 6, 0xcf }, 40 },
    { { "x86_64", "GenuineIntel", true, 6, 0xad }, 22 },
    { { "x86_64", "GenuineIntel", true, 6, 0x8f }, 22 },
    { { "x86_64", "GenuineIntel", true, 6, 0x6a }, 10 },
    { { "x86_64", "GenuineIntel", true, 6, 0x55 }, 10 },
    { { "x86_64", "GenuineIntel", true, 6, 0x4f }, 6 },
    { { "x86_64", "GenuineIntel", true, 19, 1 }, 6 },
    { { "x86_64", "GenuineIntel", false, 6, 0 }, 0 },
    { { "x86_64", "AuthenticAMD", true, 143, 49 }, 16 },
    { { "x86_64", "AuthenticAMD", false, 0, 0 }, 16 },
    { { "x86_64", "CentaurHauls", true, 7, 0x5b }, 9 },
    { { "x86_64", "  Shanghai  ", true, 7, 0x3b }, 6 },
    { { "arm64", "ARM", false, 0, 0 }, 6 },
    { { "ppc64", NULL, false, 0, 0 }, 32 },
    { { "x86_64", "HygonGenuine", true, 24, 1 }, 0 },
    { { NULL, NULL, false, 0, 0 }, 0 },
};

START_TEST(knows_links_between_sockets)
{
    for (gsize i = 0; i < G_N_ELEMENTS(sockets); i++) {
        const char *name = NULL, *missing = NULL;
        const double rate = lh_tool_socket_rate(&sockets[i].cpu, &name, &missing);

        ck_assert_double_eq(rate, sockets[i].gbps * 1e9);
        ck_assert_int_eq(name != NULL, rate > 0);
        ck_assert_int_eq(missing != NULL, rate == 0);
    }
}
END_TEST

/* --- runs ---------------------------------------------------------------------------------------
 */

/* Output of a program on @ranks GPUs with @gbps of bus bandwidth at 256 MiB and half at the
 * smaller size. */
static char *
print_run(const char *program, guint ranks, double gbps)
{
    const bool sends = strcmp(program, "sendrecv_perf") == 0;
    const double rounds = strcmp(program, "all_reduce_perf") == 0 ? 2 : 1;
    const double share = sends ? 1 : rounds * (ranks - 1) / ranks;
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "# %s\n", program);
    for (guint i = 0; i < ranks; i++)
        g_string_append_printf(text, "# Rank %u Group 0 Pid 1 on a device %u\n", i, i);
    g_string_append(text, "# size count type redop root time algbw busbw #wrong\n");
    for (guint i = 0; i < 2; i++) {
        const double bytes = i == 0 ? 1048576 : 268435456, rate = i == 0 ? gbps / 2 : gbps;

        g_string_append_printf(text, "%.0f 8 float none -1 %.3f %.3f %.3f 0\n", bytes,
                               bytes * share / rate / 1e3, rate / share, rate);
    }
    return g_string_free(text, FALSE);
}

typedef struct {
    const char *program; /* NULL: end */
    guint ranks;
    double gbps;
} TestRun;

#define INTEL(numa, model)                                                                         \
    "<cpu numaid=\"" numa "\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"" model "\">"
#define AMD_AT(numa) "<cpu numaid=\"" numa "\" vendor=\"AuthenticAMD\">"
#define FAST(n)                                                                                    \
    "<pci link_speed=\"16.0 GT/s\" link_width=\"16\"><gpu dev=\"" n "\" sm=\"89\"/></pci>"
#define SWITCH(inside) "<pci link_speed=\"8.0 GT/s\" link_width=\"8\">" inside "</pci>"
#define WIDE(inside) "<pci link_speed=\"16.0 GT/s\" link_width=\"16\">" inside "</pci>"
#define ONE_AND_THREE                                                                              \
    AMD_AT("0") FAST("0") "</cpu>" AMD_AT("1") FAST("1") FAST("2") FAST("3") "</cpu>"
#define TWO_AND_TWO(cpu_0, cpu_1)                                                                  \
    cpu_0 FAST("0") FAST("1") "</cpu>" cpu_1 FAST("2") FAST("3") "</cpu>"
#define SWITCHED_TWO                                                                               \
    INTEL("0", "207")                                                                              \
    WIDE(FAST("0") FAST("1")) "</cpu>" INTEL("1", "207") FAST("2") FAST("3") "</cpu>"

static const struct {
    const char *xml;
    TestRun runs[4];
    const char *made;
} measured[] = {
    /* 1 x 3 of 4 x 3 / 4 pairs cross the link of the single GPU. */
    { ONE_AND_THREE,
      { { "alltoall_perf", 4, 5 } },
      "pcie 24 GB/s datasheet | socket 0,1,1,1 5 GB/s fitted | p2p none, two" },
    /* A ring crosses it once, too. */
    { ONE_AND_THREE,
      { { "all_gather_perf", 4, 9 }, { "alltoall_perf", 4, 5 } },
      "pcie 24 GB/s datasheet | socket 0,1,1,1 9 GB/s fitted | p2p none, two | host 9 GB/s "
      "fitted" },
    /* Nothing shows that the link between sockets was the limit. */
    { TWO_AND_TWO(AMD_AT("0"), AMD_AT("1")),
      { { "all_gather_perf", 4, 9 }, { "alltoall_perf", 4, 8.9 } },
      "pcie 24 GB/s datasheet | socket 2 16 GB/s datasheet | p2p none, two | host 9 GB/s fitted" },
    /* Two GPUs bypass memory; NCCL does not on Intel hosts, but a run shows that something did. */
    { TWO_AND_TWO(INTEL("0", "207"), INTEL("1", "207")),
      { { "all_gather_perf", 2, 18 }, { "all_gather_perf", 4, 9 } },
      "pcie 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p none, two | host 9 GB/s fitted" },
    { TWO_AND_TWO(INTEL("0", "207"), INTEL("1", "207")),
      { { "all_gather_perf", 2, 9.2 }, { "all_gather_perf", 4, 9 } },
      "pcie 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p none | host 9 GB/s fitted" },
    { TWO_AND_TWO(INTEL("0", "207"), INTEL("1", "207")),
      { { "all_reduce_perf", 2, 7 } },
      "pcie 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p none | host 7 GB/s fitted" },
    /* A link's rate is at least the measured traffic over it. */
    { TWO_AND_TWO(INTEL("0", "79"), INTEL("1", "79")),
      { { "reduce_scatter_perf", 4, 9 } },
      "pcie 24 GB/s datasheet | socket 2 9 GB/s fitted | p2p none | host 9 GB/s fitted" },
    { TWO_AND_TWO(INTEL("0", "207"), INTEL("1", "207")),
      { { "all_gather_perf", 4, 9 }, { "alltoall_perf", 4, 12 } },
      "pcie 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p none | host 12 GB/s fitted" },
    { TWO_AND_TWO(AMD_AT("0"), AMD_AT("1")),
      { { "all_gather_perf", 2, 26 } },
      "pcie 26 GB/s measured | socket 2 16 GB/s datasheet | p2p none, two" },
    /* Direct sends give the rate of a GPU's own link, others that of memory. */
    { SWITCHED_TWO,
      { { "sendrecv_perf", 2, 22 } },
      "pcie 22 GB/s measured | switch 0,0,1,2 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p "
      "switch | host 18.33 GB/s datasheet" },
    { SWITCHED_TWO,
      { { "sendrecv_perf", 4, 11 } },
      "pcie 24 GB/s datasheet | switch 0,0,1,2 24 GB/s datasheet | socket 2 40 GB/s datasheet | "
      "p2p "
      "switch | host 11 GB/s fitted" },
    { SWITCHED_TWO,
      { { "sendrecv_perf", 4, 11 }, { "sendrecv_perf", 2, 22 } },
      "pcie 22 GB/s measured | switch 0,0,1,2 24 GB/s datasheet | socket 2 40 GB/s datasheet | p2p "
      "switch | host 11 GB/s fitted" },
    /* A switch was the bottleneck, so the link between sockets need not have been. */
    { AMD_AT("0") SWITCH(FAST("0") FAST("1")) FAST("2") "</cpu>" AMD_AT("1") FAST("3") "</cpu>",
      { { "alltoall_perf", 4, 4.5 } },
      "pcie 24 GB/s datasheet | switch 0,0,1,2 6 GB/s datasheet | socket 0,0,0,1 16 GB/s datasheet "
      "| p2p switch, two" },
};

START_TEST(takes_rates_of_runs)
{
    g_autofree char *xml =
        g_strconcat("<system version=\"1\">", measured[_i].xml, "</system>", NULL);
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(LhTopology) t = NULL;
    g_autofree char *made = NULL;

    ck_assert(lh_tool_parse(cluster, "a", xml, strlen(xml), NULL));
    for (const TestRun *run = measured[_i].runs; run->program != NULL; run++) {
        g_autofree char *text = print_run(run->program, run->ranks, run->gbps);
        g_autoptr(GError) error = NULL;

        ck_assert_msg(lh_tool_parse(cluster, run->program, text, strlen(text), &error), "%s",
                      error != NULL ? error->message : "");
    }
    t = told_made_of(cluster, NULL, "l40s");
    made = describe(t);
    ck_assert_str_eq(made, measured[_i].made);
    check_bounds(t);
}
END_TEST

/* Runs on two GPUs give the rate of bridges, runs on more that of PCIe, in any order of files. */
START_TEST(tells_bridges_from_what_is_between)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "smi-bridges.txt", NULL });
    g_autofree char *two = print_run("sendrecv_perf", 2, 50);
    g_autofree char *four = print_run("sendrecv_perf", 4, 11);
    const char *texts[] = { two, four };
    g_autoptr(LhTopology) t = NULL;

    for (int i = 0; i < 2; i++)
        ck_assert(
            lh_tool_parse(cluster, i == 0 ? "a" : "b", texts[i ^ _i], strlen(texts[i ^ _i]), NULL));
    t = told_made_of(cluster, "azure-nc96-a100", NULL);
    ck_assert_double_eq_tol(t->nvlink.bandwidth, 50e9, 1e8);
    ck_assert_int_eq(t->nvlink.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_double_eq_tol(t->tree.per_gpu, 11e9, 1e8);
}
END_TEST

#define SHORT_SENDS(ranks)                                                                         \
    "# sendrecv_perf\n" ranks "# size count type redop root time algbw busbw #wrong\n"             \
    "8 8 float none -1 7.5 0 0 0\n"
#define RANK "# Rank 0 Group 0 Pid 1 on a device 0\n"
#define NEXT_RANK "# Rank 1 Group 0 Pid 1 on a device 1\n"

/* A run of short messages gives a latency and no rate; one with more ranks than GPUs is from
 * another host. */
START_TEST(takes_latencies_alone)
{
    static const char two[] = SHORT_SENDS(RANK NEXT_RANK),
                      five[] = SHORT_SENDS(RANK NEXT_RANK NEXT_RANK NEXT_RANK NEXT_RANK);
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "nccl-no-family.xml", NULL });
    g_autoptr(LhToolCluster) other = told_load((const char *[]){ "nccl-no-family.xml", NULL });
    g_autoptr(LhTopology) t = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(lh_tool_parse(cluster, "a", two, strlen(two), NULL));
    t = told_made_of(cluster, NULL, "l40s");
    ck_assert_double_eq(t->pcie.bandwidth, 24e9);
    ck_assert_int_eq(t->pcie.latency_ps, 7500000);
    ck_assert(lh_tool_parse(other, "a", five, strlen(five), NULL));
    ck_assert_ptr_null(told_make(other, NULL, "l40s", &error));
    ck_assert_str_eq(error->message, "a:8: error: 5 ranks ran on one host, and a node has 4 GPUs; "
                                     "give files that agree");
}
END_TEST

/* Also on NVSwitch. A switch that reduces moves a vector once over each GPU's links and once
 * over all. */
START_TEST(raises_nvlink_to_what_went_over_it)
{
    static const struct {
        const char *program;
        double gbps, link; /* GB/s */
    } cases[] = { { "all_gather_perf", 310, 300 },
                  { "all_gather_perf", 350, 350 },
                  { "all_reduce_perf", 450, 300 },
                  { "all_reduce_perf", 560, 360 } };
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "smi-h100.txt", NULL });
    g_autofree char *sends = print_run("sendrecv_perf", 8, 300);
    g_autofree char *run = print_run(cases[_i].program, 8, cases[_i].gbps);
    g_autoptr(LhTopology) t = NULL;

    ck_assert(lh_tool_parse(cluster, "a", sends, strlen(sends), NULL));
    ck_assert(lh_tool_parse(cluster, "b", run, strlen(run), NULL));
    t = told_made_of(cluster, "hgx-h100", NULL);
    ck_assert_double_eq_tol(t->nvlink.bandwidth, cases[_i].link * 1e9, 1e8);
}
END_TEST

/* --- NICs ---------------------------------------------------------------------------------------
 */

#define LEFT_OUT "left out, since other NICs are at least as near to GPUs: "

static const struct {
    const char *file;
    double nics;
    const char *of_gpu, *left_out;
} nics[] = {
    { "smi-4of8.txt", 4, "0,0,1,1,2,2,3,3", LEFT_OUT "NIC4, NIC5" },
    { "smi-uneven-nics.txt", 4, "0,0,1,1,2,3,3,3", NULL },
    /* Each row of GPUs has a row of NICs, whatever they are called. */
    { "smi-h100.txt", 8, "0,1,2,3,4,5,6,7", LEFT_OUT "NIC0" },
    { "smi-storage-nics.txt", 8, "0,1,2,3,4,5,6,7", LEFT_OUT "NIC0, NIC9" },
    { "smi-two-ports.txt", 2, "0,0,1,1", NULL },
    { "smi-plx-8.txt", 4, "0,0,1,1,2,2,3,3", NULL },
    { "smi-cascade-8.txt", 1, "0,0,0,0,0,0,0,0", NULL },
    { "smi-epyc-8.txt", 2, "0,0,0,0,1,1,1,1", NULL },
    { "smi-pcie.txt", 1, "0,0,0,0", NULL },
    { "smi-soc.txt", 4, "0,1,2,3", NULL },
    { "nccl-a100.xml", 1, "0", LEFT_OUT "mlx5_4, mlx5_5" },
    { "nccl-plx-8.xml", 4, "0,0,1,1,2,2,3,3", NULL },
    { "nccl-bcm-8.xml", 4, "0,0,1,1,2,2,3,3", NULL },
    { "nccl-gh200.xml", 1, "0", NULL },
    { "nccl-domain.xml", 8, "0,1,2,3,4,5,6,7", NULL },
};

START_TEST(finds_the_nic_of_each_gpu)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ nics[_i].file, NULL });
    g_autoptr(GString) of_gpu = g_string_new(NULL);

    ck_assert_double_eq(cluster->told[LH_TOOL_NICS].value, nics[_i].nics);
    ck_assert_ptr_nonnull(cluster->nic_of_gpu);
    append_numbers(of_gpu, cluster->nic_of_gpu);
    ck_assert_str_eq(of_gpu->str, nics[_i].of_gpu);
    ck_assert_uint_eq(cluster->notes->len, nics[_i].left_out != NULL);
    if (nics[_i].left_out != NULL)
        ck_assert_msg(g_str_has_suffix(g_ptr_array_index(cluster->notes, 0), nics[_i].left_out),
                      "%s", (char *)g_ptr_array_index(cluster->notes, 0));
}
END_TEST

/* GPU 2 is as close to the NIC of GPUs 0 and 1 as to that of GPU 3, which serves fewer. */
START_TEST(lets_gpus_of_one_nic_choose_first)
{
    static const char text[] = "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 CPU\nGPU0 X SYS SYS SYS PIX SYS\n"
                               "GPU1 SYS X SYS SYS PIX SYS\nGPU2 SYS SYS X SYS SYS SYS\n"
                               "GPU3 SYS SYS SYS X SYS PIX\n";
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GString) of_gpu = g_string_new(NULL);

    ck_assert(lh_tool_parse(cluster, "a", text, strlen(text), NULL));
    append_numbers(of_gpu, cluster->nic_of_gpu);
    ck_assert_str_eq(of_gpu->str, "0,0,1,1");
}
END_TEST

/* Equal after reading the file back; the default assignment of NICs is not written. */
START_TEST(writes_the_nic_of_each_gpu)
{
    static const struct {
        const char *file, *of_gpu;
    } cases[] = { { "smi-uneven-nics.txt", "0,0,1,1,2,3,3,3" }, { "smi-4of8.txt", NULL } };
    const char *const file = cases[_i].file;
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ file, NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "hgx-h100", NULL);
    g_autoptr(GString) of_gpu = g_string_new(NULL);

    ck_assert_uint_eq(t->nics_per_node, 4);
    ck_assert_int_eq(t->nic_of_gpu != NULL, cases[_i].of_gpu != NULL);
    if (t->nic_of_gpu != NULL)
        append_numbers(of_gpu, t->nic_of_gpu);
    ck_assert_str_eq(of_gpu->str, cases[_i].of_gpu != NULL ? cases[_i].of_gpu : "");
}
END_TEST

#define TRAY                                                                                       \
    "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 CPU\nGPU0 X NV18 NV18 NV18 PIX SYS\nGPU1 NV18 X NV18 NV18 SYS " \
    "PIX\nGPU2 NV18 NV18 X NV18 SYS SYS\nGPU3 NV18 NV18 NV18 X SYS SYS\n"

/* From one host of an NVLink domain, for all of its hosts. */
START_TEST(writes_the_nics_of_all_trays)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(LhTopology) t = NULL;

    ck_assert(lh_tool_parse(cluster, "a", TRAY, strlen(TRAY), NULL));
    t = told_made_of(cluster, "nvl72", NULL);
    ck_assert_uint_eq(t->nics_per_node, 36);
    ck_assert_ptr_nonnull(t->nic_of_gpu);
    for (uint64_t gpu = 0; gpu < 72; gpu++)
        ck_assert_uint_eq(g_array_index(t->nic_of_gpu, uint64_t, gpu), gpu / 4 * 2 + (gpu % 4 > 0));
}
END_TEST

/* NCCL reports an NVLink domain as one. */
START_TEST(writes_hosts_of_a_domain)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "nccl-domain.xml", NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "hgx-b200", NULL);

    ck_assert_uint_eq(t->gpus_per_node, 8);
    ck_assert_uint_eq(t->hosts, 2);
    ck_assert_uint_eq(t->nics_per_node, 8);
}
END_TEST

/* --- notes
 * --------------------------------------------------------------------------------------- */

static const struct {
    const char *file, *base, *device, *note;
} remarks[] = {
    { "nccl-epyc-8.xml", NULL, "l40s", "node.pcie.levels[0].up: NCCL's constants, not measured" },
    { "nccl-plx-8.xml", NULL, "l40s",
      "node.pcie.levels[0].up, node.pcie.levels[1].up, node.pcie.host.per_gpu: NCCL's constants" },
    { "nccl-plx-8.xml", NULL, "l40s", "alltoall_perf and sendrecv_perf on all 8 GPUs give it" },
    { "nccl-no-family.xml", NULL, "l40s",
      "node.pcie.levels[0]: no file gives the bandwidth of the link of a socket, so it is never" },
    { "nccl-no-family.xml", NULL, "l40s",
      "nccl-no-family.xml:2: <cpu> lacks familyid and modelid, from which NCCL derives" },
    { "nccl-epyc-8.xml", NULL, "l40s", "node.pcie.latency: assumed, as in the clusters shipped" },
    { "nccl-epyc-8.xml", NULL, "l40s", "node.nics.latency: assumed, as in the clusters shipped" },
    { "smi-epyc-8.txt", "pcie-l40s", NULL,
      "node.pcie.host: the bandwidth through memory is assumed to be that of the GPUs' links" },
    { "smi-epyc-8.txt", "pcie-l40s", NULL,
      "node.collective_times: 12 rows of pcie-l40s are left out, since its GPUs are joined" },
};

START_TEST(says_what_nobody_measured)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ remarks[_i].file, NULL });
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made = NULL;

    leave_nics_out(cluster);
    made = told_make(cluster, remarks[_i].base, remarks[_i].device, &error);
    ck_assert_msg(made != NULL, "%s", error != NULL ? error->message : "");
    for (guint i = 0; i < made->notes->len; i++)
        g_string_append_printf(all, "%s\n", (char *)g_ptr_array_index(made->notes, i));
    ck_assert_msg(strstr(all->str, remarks[_i].note) != NULL, "%s", all->str);
}
END_TEST

#define HEAD "GPU0 GPU1 GPU2 CPU\n"
#define GPU(n) "<pci><gpu dev=\"" n "\" sm=\"89\"/></pci>"
#define FOUR_DEEP                                                                                  \
    "<pci>" GPU("0") "<pci>" GPU("1") "<pci>" GPU("2") "<pci>" GPU("3")                            \
        GPU("4") "</pci></pci></pci></pci>" GPU("5")

static const struct {
    const char *first, *second; /* NULL: none */
    const char *message;
} broken[] = {
    { HEAD "GPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n", NULL,
      "a:1: error: GPU0 and GPU2 are far from each other, but near GPUs that are near" },
    { HEAD "GPU0 X NODE SYS\nGPU1 NODE X PHB\nGPU2 SYS PHB X\n", NULL,
      "a:1: error: GPU0 and GPU2 are far from each other" },
    { "<system version=\"1\">\n<cpu familyid=\"six\">" GPU("0") "</cpu></system>", NULL,
      "a:2:22: error: familyid=\"six\" of <cpu>; allowed: a number from 0 to 65535" },
    { "<system version=\"1\"><cpu modelid=\"-1\">" GPU("0") "</cpu></system>", NULL,
      "error: modelid=\"-1\" of <cpu>; allowed: a number from 0" },
    { "<system version=\"1\"><cpu numaid=\"0\">" FOUR_DEEP "</cpu></system>", NULL,
      "a:1: error: 4 levels of nested switches; allowed: 3" },
    { HEAD "GPU0 X PIX SYS\nGPU1 PIX X SYS\nGPU2 SYS SYS X\n",
      HEAD "GPU0 X SYS SYS\nGPU1 SYS X PIX\nGPU2 SYS PIX X\n",
      "b:1: error: other GPUs share a switch here than in a:1; give files that agree" },
    { HEAD "GPU0 X PHB SYS\nGPU1 PHB X SYS\nGPU2 SYS SYS X\n",
      "<system version=\"1\"><cpu numaid=\"0\">" GPU("0") "</cpu><cpu numaid=\"1\">" GPU("1")
          GPU("2") "</cpu></system>",
      "b:1: error: other GPUs share a socket here than in a:1; give files that agree" },
};

START_TEST(refuses_what_is_no_tree)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;
    const char *first = broken[_i].first, *second = broken[_i].second;
    const bool ok = lh_tool_parse(cluster, "a", first, strlen(first), &error);

    ck_assert_msg(ok == (second != NULL), "%s", error != NULL ? error->message : first);
    if (second != NULL)
        ck_assert(!lh_tool_parse(cluster, "b", second, strlen(second), &error));
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_msg(strstr(error->message, broken[_i].message) != NULL, "%s", error->message);
}
END_TEST

/* --- small trees --------------------------------------------------------------------------------
 */

#define AMD "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"

static const struct {
    const char *xml, *made;
} small[] = {
    /* One switch with all GPUs: nothing is outside, and all reach each other directly. */
    { AMD SWITCH(FAST("0") FAST("1") FAST("2")) "</cpu>", "pcie 24 GB/s datasheet" },
    /* A switch with one GPU is part of that GPU's link. */
    { AMD SWITCH(FAST("0")) FAST("1") "</cpu>", "pcie 6 GB/s datasheet | p2p none, two" },
    /* A switch, and GPUs without one, on one socket. */
    { AMD SWITCH(FAST("0") FAST("1")) FAST("2") FAST("3") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1,2 6 GB/s datasheet | p2p switch, two" },
    /* Two switches in a row are one link, at the slower rate. */
    { AMD "<pci link_speed=\"2.5 GT/s\" link_width=\"16\">" SWITCH(
          FAST("0") FAST("1")) "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 3 GB/s datasheet | p2p switch, two" },
    /* The slowest link of a level, and of a switch and a socket in a row. */
    { AMD SWITCH(FAST("0") FAST("1")) WIDE(FAST("2") FAST("3")) "</cpu>",
      "pcie 24 GB/s datasheet | switch 2 6 GB/s datasheet | p2p switch, two" },
    { AMD WIDE(FAST("0") FAST("1")) SWITCH(FAST("2") FAST("3")) "</cpu>",
      "pcie 24 GB/s datasheet | switch 2 6 GB/s datasheet | p2p switch, two" },
    { AMD_AT("0") SWITCH(FAST("0") FAST("1")) "</cpu>" AMD_AT("1")
          SWITCH(FAST("2") FAST("3")) "</cpu>",
      "pcie 24 GB/s datasheet | switch 2 6 GB/s datasheet | p2p switch, two" },
    /* No rate is given for its link. */
    { AMD "<pci>" FAST("0") FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    { AMD "<pci link_speed=\"Unknown\" link_width=\"63\">" FAST("0")
          FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    { AMD "<pci link_speed=\"16.0 GT/s\" link_width=\"\">" FAST("0")
          FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    /* A NUMA node named twice is one. */
    { AMD FAST("0") "</cpu>" AMD FAST("1") "</cpu>", "pcie 24 GB/s datasheet | p2p none, two" },
    { "<cpu numaid=\"1\">" FAST("0") "</cpu>" AMD FAST("1") "</cpu>",
      "pcie 24 GB/s datasheet | socket 1 | p2p none" },
    /* The slowest of the links between sockets. */
    { AMD FAST("0") "</cpu><cpu numaid=\"1\" vendor=\"GenuineIntel\" familyid=\"6\" "
                    "modelid=\"79\">" FAST("1") "</cpu>",
      "pcie 24 GB/s datasheet | socket 1 6 GB/s datasheet | p2p none, two" },
};

START_TEST(makes_small_trees)
{
    g_autofree char *xml = g_strconcat("<system version=\"1\">", small[_i].xml, "</system>", NULL);
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) t = NULL;
    g_autofree char *made = NULL;

    ck_assert_msg(lh_tool_parse(cluster, "a", xml, strlen(xml), &error), "%s",
                  error != NULL ? error->message : "");
    t = told_made_of(cluster, NULL, "l40s");
    made = describe(t);
    ck_assert_str_eq(made, small[_i].made);
}
END_TEST

#define BRIDGED(bus, dev, to)                                                                      \
    "<pci busid=\"" bus "\"><gpu dev=\"" dev "\" sm=\"80\"><nvlink target=\"" to                   \
    "\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"

/* NVLink hides the PCIe path: affinities give sockets if they fit the visible paths, and XML of
 * the same host does not contradict. */
START_TEST(knows_what_nvlink_hides)
{
    static const char pairs[] = "GPU0 X NV4 SYS SYS%s\nGPU1 NV4 X SYS SYS%s\n"
                                "GPU2 SYS SYS X NV4%s\nGPU3 SYS SYS NV4 X%s\n";
    static const struct {
        const char *head, *nodes[4];
        guint groups; /* of sockets; 0: no such level */
    } cases[] = { { " CPU Affinity", { " 0-7", " 0-7", " 8-9", " 8-9" }, 2 },
                  { " CPU Affinity", { " 0-9", " 0-9", " 0-9", " 0-9" }, 4 },
                  { " CPU Affinity", { " N/A", " N/A", " N/A", " N/A" }, 4 },
                  { "", { "", "", "", "" }, 4 },
                  { "", { " 0-7", " 0-7", " 8-9", " 8-9" }, 4 } };
    static const char xml[] = "<system version=\"1\">" AMD_AT("0") BRIDGED("a", "0", "b")
        BRIDGED("b", "1", "a") "</cpu>" AMD_AT("1") BRIDGED("c", "2", "d")
            BRIDGED("d", "3", "c") "</cpu></system>";
    const char *const *n = cases[_i].nodes;
    g_autofree char *rows = g_strdup_printf(pairs, n[0], n[1], n[2], n[3]);
    g_autofree char *text = g_strconcat("GPU0 GPU1 GPU2 GPU3", cases[_i].head, "\n", rows, NULL);
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;
    const LhToolLevel *level;

    ck_assert_msg(lh_tool_parse(cluster, "a", text, strlen(text), &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_uint_eq(cluster->tree.levels->len, 1);
    level = &g_array_index(cluster->tree.levels, LhToolLevel, 0);
    ck_assert_str_eq(level->name, "socket");
    ck_assert_uint_eq(lh_tool_groups_count(level->of_gpu), cases[_i].groups);
    ck_assert(!cluster->tree.complete);
    ck_assert_msg(lh_tool_parse(cluster, "b", xml, strlen(xml), &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_str_eq(cluster->tree.place, "b:1");
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("topology_trees", { makes_a_tree, G_N_ELEMENTS(trees) },
                      { knows_links_between_sockets, 1 },
                      { finds_the_nic_of_each_gpu, G_N_ELEMENTS(nics) },
                      { lets_gpus_of_one_nic_choose_first, 1 }, { writes_the_nic_of_each_gpu, 2 },
                      { writes_the_nics_of_all_trays, 1 }, { writes_hosts_of_a_domain, 1 },
                      { says_what_nobody_measured, G_N_ELEMENTS(remarks) },
                      { refuses_what_is_no_tree, G_N_ELEMENTS(broken) },
                      { takes_rates_of_runs, G_N_ELEMENTS(measured) },
                      { tells_bridges_from_what_is_between, 2 }, { takes_latencies_alone, 1 },
                      { raises_nvlink_to_what_went_over_it, 4 }, { knows_what_nvlink_hides, 5 },
                      { makes_small_trees, G_N_ELEMENTS(small) })
