/*
 * PCIe of a node and the NICs of its GPUs, of what tools print: the tree, the rates of its links by
 * constants and by runs, and what is said of what nobody measured.
 */
#include "run_tests.h"
#include "told_files.h"

#include "import/told_tree.h"
#include "sim/network/link_bound.h"

/* "0,0,1,1"; @numbers of uint64_t. */
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

/* "24 GB/s datasheet | socket 4: 16 GB/s datasheet | p2p none, two | host 20 GB/s datasheet | 2
 * NICs". */
static char *
describe(const LhTopology *t)
{
    GString *text = g_string_new("pcie");

    append_rate(text, t->pcie.bandwidth, t->pcie.provenance);
    for (guint i = 0; i < lh_pcie_levels_count(&t->tree); i++) {
        const LhPcieLevel *level = &g_array_index(t->tree.levels, LhPcieLevel, i);

        g_string_append_printf(text, " | %s ", level->name);
        if (level->of_gpu != NULL)
            append_numbers(text, level->of_gpu);
        else
            g_string_append_printf(text, "%" G_GUINT64_FORMAT, level->gpus);
        append_rate(text, level->up, level->provenance);
    }
    if (t->tree.p2p != NULL)
        g_string_append_printf(text, " | p2p %s%s", t->tree.p2p, t->tree.p2p_two ? ", two" : "");
    if (t->tree.memory_source != NULL) {
        g_string_append(text, " | host");
        append_rate(text, t->tree.per_gpu, t->tree.memory_provenance);
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
    /* One switch a socket: messages that leave it cross the link between sockets. */
    { { "nccl-cascade-8.xml" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | inner-switch 2 12 GB/s datasheet | switch 4 6 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 2 NICs" },
    /* Parts of a switch are no switches. */
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
    /* As topologies/pcie-rtx-pro-6000.json has it, by the same rows. */
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
    /* The base is of the same form, and says what the matrix does not. */
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
    /* NVLink hides the way between two GPUs, of which affinities tell. */
    { { "smi-bridges.txt" },
      "azure-nc96-a100",
      NULL,
      "pcie 16 GB/s assumed | socket 2 | p2p none | 1 NICs" },
    /* Both know the tree, and one its rates. */
    { { "smi-plx-8.txt", "nccl-plx-8.xml" },
      NULL,
      "l40s",
      "pcie 12 GB/s datasheet | switch 2 12 GB/s datasheet | socket 4 10 GB/s datasheet | p2p "
      "switch | host 10 GB/s datasheet | 4 NICs" },
    /* A generic box with rates that were measured, and no file of its tree. */
    { { LOGS },
      "pcie5-2socket",
      NULL,
      "pcie 40 GB/s datasheet | socket 4 42.05 GB/s fitted | p2p none | host 25.7 GB/s fitted" },
};

/* Whether all links of the node, and of the tree that rows were measured on, can be played. */
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

/* Of matrices without a rate of NICs only the tree is compared. */
static void
leave_nics_out(LhToldCluster *cluster)
{
    if (cluster->told[LH_TOLD_NIC_WIRE].known)
        return;
    cluster->told[LH_TOLD_NICS].known = cluster->told[LH_TOLD_NICS_JOINED].known = false;
}

START_TEST(makes_a_tree)
{
    g_autoptr(LhToldCluster) cluster = told_load(trees[_i].files);
    g_autofree char *made = NULL;
    g_autoptr(LhTopology) t = NULL;

    leave_nics_out(cluster);
    t = told_made_of(cluster, trees[_i].base, trees[_i].device);
    made = describe(t);
    ck_assert_str_eq(made, trees[_i].made);
    check_bounds(t);
}
END_TEST

/* What NCCL counts on between sockets, by CPU. */
static const struct {
    LhToldCpu cpu;
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
        const double rate = lh_told_socket_rate(&sockets[i].cpu, &name, &missing);

        ck_assert_double_eq(rate, sockets[i].gbps * 1e9);
        ck_assert_int_eq(name != NULL, rate > 0);
        ck_assert_int_eq(missing != NULL, rate == 0);
    }
}
END_TEST

/* --- NICs ---------------------------------------------------------------------------------------
 */

#define LEFT_OUT "left out, since other NICs are nearer to GPUs or as near: "

static const struct {
    const char *file;
    double nics;
    const char *of_gpu, *left_out;
} nics[] = {
    { "smi-4of8.txt", 4, "0,0,1,1,2,2,3,3", LEFT_OUT "NIC4, NIC5" },
    { "smi-uneven-nics.txt", 4, "0,0,1,1,2,3,3,3", NULL },
    /* A row of GPUs has a row of NICs, whatever these are called. */
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
    g_autoptr(LhToldCluster) cluster = told_load((const char *[]){ nics[_i].file, NULL });
    g_autoptr(GString) of_gpu = g_string_new(NULL);

    ck_assert_double_eq(cluster->told[LH_TOLD_NICS].value, nics[_i].nics);
    ck_assert_ptr_nonnull(cluster->nic_of_gpu);
    append_numbers(of_gpu, cluster->nic_of_gpu);
    ck_assert_str_eq(of_gpu->str, nics[_i].of_gpu);
    ck_assert_uint_eq(cluster->notes->len, nics[_i].left_out != NULL);
    if (nics[_i].left_out != NULL)
        ck_assert_msg(g_str_has_suffix(g_ptr_array_index(cluster->notes, 0), nics[_i].left_out),
                      "%s", (char *)g_ptr_array_index(cluster->notes, 0));
}
END_TEST

/* As a reader of the file has it; rows of GPUs that are as a file without it has them are left out.
 */
START_TEST(writes_the_nic_of_each_gpu)
{
    static const struct {
        const char *file, *of_gpu;
    } cases[] = { { "smi-uneven-nics.txt", "0,0,1,1,2,3,3,3" }, { "smi-4of8.txt", NULL } };
    const char *const file = cases[_i].file;
    g_autoptr(LhToldCluster) cluster = told_load((const char *[]){ file, NULL });
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

/* Of a host of an NVLink domain, for all of its hosts. */
START_TEST(writes_the_nics_of_all_trays)
{
    g_autoptr(LhToldCluster) cluster = lh_told_new();
    g_autoptr(LhTopology) t = NULL;

    ck_assert(lh_told_parse(cluster, "a", TRAY, strlen(TRAY), NULL));
    t = told_made_of(cluster, "nvl72", NULL);
    ck_assert_uint_eq(t->nics_per_node, 36);
    ck_assert_ptr_nonnull(t->nic_of_gpu);
    for (uint64_t gpu = 0; gpu < 72; gpu++)
        ck_assert_uint_eq(g_array_index(t->nic_of_gpu, uint64_t, gpu), gpu / 4 * 2 + (gpu % 4 > 0));
}
END_TEST

/* --- what is said -------------------------------------------------------------------------------
 */

static const struct {
    const char *file, *base, *device, *note;
} remarks[] = {
    { "nccl-epyc-8.xml", NULL, "l40s",
      "node.pcie.levels[0].up: what NCCL counts with and nobody measured" },
    { "nccl-plx-8.xml", NULL, "l40s",
      "node.pcie.levels[0].up, node.pcie.levels[1].up, node.pcie.host.per_gpu: what NCCL counts" },
    { "nccl-plx-8.xml", NULL, "l40s", "alltoall_perf and sendrecv_perf on all 8 GPUs tell it" },
    { "nccl-no-family.xml", NULL, "l40s",
      "node.pcie.levels[0]: nothing says what the link of a socket carries, so that it is never" },
    { "nccl-no-family.xml", NULL, "l40s",
      "nccl-no-family.xml:2: <cpu> lacks familyid and modelid, by which NCCL knows" },
    { "nccl-epyc-8.xml", NULL, "l40s", "node.pcie.latency: assumed, as of clusters that come" },
    { "nccl-epyc-8.xml", NULL, "l40s", "node.nics.latency: assumed, as of clusters that come" },
    { "smi-epyc-8.txt", "pcie-l40s", NULL,
      "node.pcie.host: GPUs are taken to reach as much through memory as their links carry" },
    { "smi-epyc-8.txt", "pcie-l40s", NULL,
      "node.collective_times: 12 rows of pcie-l40s are left out, since its GPUs are joined" },
};

START_TEST(says_what_nobody_measured)
{
    g_autoptr(LhToldCluster) cluster = told_load((const char *[]){ remarks[_i].file, NULL });
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToldTopology) made = NULL;

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
      "a:1: error: GPU0 and GPU2 are near other GPUs that are near each other, and far" },
    { HEAD "GPU0 X NODE SYS\nGPU1 NODE X PHB\nGPU2 SYS PHB X\n", NULL,
      "a:1: error: GPU0 and GPU2 are near other GPUs" },
    { "<system version=\"1\">\n<cpu familyid=\"six\">" GPU("0") "</cpu></system>", NULL,
      "a:2:22: error: familyid=\"six\" of <cpu>; allowed: a number from 0 to 65535" },
    { "<system version=\"1\"><cpu modelid=\"-1\">" GPU("0") "</cpu></system>", NULL,
      "error: modelid=\"-1\" of <cpu>; allowed: a number from 0" },
    { "<system version=\"1\"><cpu numaid=\"0\">" FOUR_DEEP "</cpu></system>", NULL,
      "a:1: error: switches inside each other, 4 levels of them; allowed: 3" },
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
    g_autoptr(LhToldCluster) cluster = lh_told_new();
    g_autoptr(GError) error = NULL;
    const char *first = broken[_i].first, *second = broken[_i].second;
    const bool ok = lh_told_parse(cluster, "a", first, strlen(first), &error);

    ck_assert_msg(ok == (second != NULL), "%s", error != NULL ? error->message : first);
    if (second != NULL)
        ck_assert(!lh_told_parse(cluster, "b", second, strlen(second), &error));
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_msg(strstr(error->message, broken[_i].message) != NULL, "%s", error->message);
}
END_TEST

/* --- small trees --------------------------------------------------------------------------------
 */

#define AMD "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
#define SWITCH(inside) "<pci link_speed=\"8.0 GT/s\" link_width=\"8\">" inside "</pci>"
#define FAST(n)                                                                                    \
    "<pci link_speed=\"16.0 GT/s\" link_width=\"16\"><gpu dev=\"" n "\" sm=\"89\"/></pci>"

static const struct {
    const char *xml, *made;
} small[] = {
    /* One switch has all: nothing is outside of it, and all reach each other. */
    { AMD SWITCH(FAST("0") FAST("1") FAST("2")) "</cpu>", "pcie 24 GB/s datasheet" },
    /* A switch of one GPU is its own link. */
    { AMD SWITCH(FAST("0")) FAST("1") "</cpu>", "pcie 6 GB/s datasheet | p2p none, two" },
    /* A switch, and GPUs without one, on one socket. */
    { AMD SWITCH(FAST("0") FAST("1")) FAST("2") FAST("3") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1,2 6 GB/s datasheet | p2p switch, two" },
    /* Two in a row are one link, the slower of both. */
    { AMD "<pci link_speed=\"2.5 GT/s\" link_width=\"16\">" SWITCH(
          FAST("0") FAST("1")) "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 3 GB/s datasheet | p2p switch, two" },
    /* Nothing is said of its link. */
    { AMD "<pci>" FAST("0") FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    { AMD "<pci link_speed=\"Unknown\" link_width=\"63\">" FAST("0")
          FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    { AMD "<pci link_speed=\"16.0 GT/s\" link_width=\"\">" FAST("0")
          FAST("1") "</pci>" FAST("2") "</cpu>",
      "pcie 24 GB/s datasheet | switch 0,0,1 | p2p switch, two" },
    /* NUMA nodes that are named twice are one. */
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
    g_autoptr(LhToldCluster) cluster = lh_told_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) t = NULL;
    g_autofree char *made = NULL;

    ck_assert_msg(lh_told_parse(cluster, "a", xml, strlen(xml), &error), "%s",
                  error != NULL ? error->message : "");
    t = told_made_of(cluster, NULL, "l40s");
    made = describe(t);
    ck_assert_str_eq(made, small[_i].made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("topology_trees");
    TCase *cases = tcase_create("topology_trees");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(cases, makes_a_tree, 0, G_N_ELEMENTS(trees));
    tcase_add_test(cases, knows_links_between_sockets);
    tcase_add_loop_test(cases, finds_the_nic_of_each_gpu, 0, G_N_ELEMENTS(nics));
    tcase_add_loop_test(cases, writes_the_nic_of_each_gpu, 0, 2);
    tcase_add_test(cases, writes_the_nics_of_all_trays);
    tcase_add_loop_test(cases, says_what_nobody_measured, 0, G_N_ELEMENTS(remarks));
    tcase_add_loop_test(cases, refuses_what_is_no_tree, 0, G_N_ELEMENTS(broken));
    tcase_add_loop_test(cases, makes_small_trees, 0, G_N_ELEMENTS(small));
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
