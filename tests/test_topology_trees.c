/*
 * PCIe of a node and the NICs of its GPUs, of what tools print: the tree, the rates of its links by
 * constants and by runs, and what is said of what nobody measured.
 */
#include "run_tests.h"
#include "told_files.h"

#include "sim/network/network.h"

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
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
