/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import of a cluster's tool output: every value that is read, unusable input, files that
 * contradict each other, and the resulting topology file.
 */
#include "run_tests.h"
#include "told_files.h"

#include <unistd.h>

#define GB 1e9
#define US 1e-6

/* Equal up to the rounding of doubles. */
static bool
same(double a, double b)
{
    return a >= b * (1 - 1e-12) && a <= b * (1 + 1e-12);
}

typedef struct {
    const char *file;
    struct {
        LhToolKind kind;
        double value;
        LhProvenance provenance;
    } told[8];
} Reading;

#define GPUS(n)                                                                                    \
    {                                                                                              \
        LH_TOOL_GPUS, n, LH_PROVENANCE_DATASHEET                                                   \
    }
#define SHAPE(kind)                                                                                \
    {                                                                                              \
        LH_TOOL_SCALE_UP, LH_SCALE_UP_##kind, LH_PROVENANCE_DATASHEET                              \
    }
#define SAID(kind, value)                                                                          \
    {                                                                                              \
        LH_TOOL_##kind, value, LH_PROVENANCE_DATASHEET                                             \
    }
#define SEEN(kind, value)                                                                          \
    {                                                                                              \
        LH_TOOL_##kind, value, LH_PROVENANCE_MEASURED                                              \
    }

static const Reading readings[] = {
    { "smi-h100.txt", { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(NICS, 8) } },
    { "smi-pcie.txt", { GPUS(4), SHAPE(NONE), SAID(NICS, 1) } },
    { "smi-pairs.txt", { GPUS(4), SHAPE(PAIRS), SAID(NVLINKS, 12) } },
    { "nccl-a100.xml",
      { GPUS(1), SHAPE(SWITCH), SAID(NVLINKS, 12), SAID(CAPABILITY, 80), SAID(PCIE_RATE, 24 * GB),
        SAID(NICS, 1), SAID(NIC_WIRE, 25 * GB) } },
    { "nccl-h100.xml",
      { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(CAPABILITY, 90), SAID(PCIE_RATE, 48 * GB),
        SAID(NICS, 8), SAID(NIC_WIRE, 50 * GB) } },
    { "all_gather.txt", { { 0 } } },
    { "all-reduce-two-hosts.txt", { SEEN(RINGS_RATE, 338.82 * GB) } },
    { "sendrecv_perf.txt", { SEEN(PEER_RATE, 364.72 * GB), SEEN(PEER_LATENCY, 6.5 * US) } },
    { "sendrecv_perf-two-hosts.txt", { SEEN(ROUTE_LATENCY, 34.24 * US) } },
    { "ib_write_bw.txt", { SEEN(NIC_RATE, 392.58 * GB / 8) } },
    { "ib_write_lat.txt", { SEEN(NIC_LATENCY, 1.27 * US) } },
    { "ib_send_bw-both-ways.txt", { SEEN(NIC_RATE, 45776.37 * 1048576 / 2) } },
    { "smi-4of8.txt", { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(NICS, 4) } },
    { "smi-storage-nics.txt", { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 8), SAID(NICS, 8) } },
    { "smi-several-nics.txt",
      { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(NICS, 8), SAID(NICS_JOINED, 2) } },
    { "smi-bond.txt", { GPUS(8), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(NICS, 8) } },
    { "smi-soc.txt", { GPUS(4), SHAPE(NONE), SAID(NICS, 4) } },
    { "smi-one-gpu.txt", { GPUS(1), SHAPE(NONE), SAID(NICS, 1) } },
    { "smi-tray.txt", { GPUS(4), SHAPE(SWITCH), SAID(NVLINKS, 18) } },
    { "nccl-lost.xml",
      { GPUS(4), SAID(NVLINKS, 12), SAID(CAPABILITY, 80), SAID(NICS, 1),
        SAID(NIC_WIRE, 12.5 * GB) } },
    { "nccl-domain.xml",
      { GPUS(8), SAID(HOSTS, 2), SHAPE(SWITCH), SAID(NVLINKS, 18), SAID(CAPABILITY, 100),
        SAID(NICS, 8), SAID(NIC_WIRE, 50 * GB) } },
    { "all-reduce-tagged.txt", { SEEN(RINGS_RATE, 1.8 * GB) } },
    { "all-reduce-2018.txt", { { 0 } } },
    { "alltoall-2021.txt", { { 0 } } },
    { "all_gather-labelled.txt", { { 0 } } },
    { "ib_write_bw-frequency.txt", { SEEN(NIC_RATE, 98.02 * GB / 8) } },
    { "topology.conf", { SAID(NODES, 18), SAID(NODES_PER_LEAF, 6) } },
    { "scontrol.txt", { SAID(NODES, 8), SAID(NODES_PER_LEAF, 4) } },
};

#define SMI "GPU0 GPU1 CPU Affinity\n"
#define SIZES "# size count type redop root time algbw busbw #wrong\n"
#define RANKS                                                                                      \
    "# all_gather_perf\n# Rank 0 Group 0 Pid 1 on a device 0\n# Rank 1 Group 0 Pid 1 on a device " \
    "1\n"
#define OLD "# size count type redop time algbw busbw error\n"
#define ROW "1048576 8 float none -1 "
#define BW " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
#define LAT " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec]\n"
#define XML(inside) "<system version=\"1\"><cpu>" inside "</cpu></system>"
#define TO_SWITCH "<nvlink target=\"s\" count=\"18\" tclass=\"0x068000\"/>"
#define HOSTS(a, b)                                                                                \
    "<system version=\"1\"><cpu host_hash=\"1\">" GPU(a) "</cpu><cpu host_hash=\"2\">" GPU(        \
        b) "</cpu></system>"
#define GPU(inside) "<pci busid=\"a\"><gpu dev=\"0\" sm=\"90\">" inside "</gpu></pci>"

/* The file states nothing but the values listed. */
START_TEST(reads_every_value)
{
    const Reading *reading = &readings[_i];
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ reading->file, NULL });
    guint known = 0, expected = 0;

    for (guint i = 0; i < G_N_ELEMENTS(reading->told) &&
                      (reading->told[i].kind != 0 || reading->told[i].value > 0);
         i++) {
        const LhToolOutput *told = &cluster->told[reading->told[i].kind];

        ck_assert_msg(told->known, "%s: kind %d", reading->file, reading->told[i].kind);
        ck_assert_msg(same(told->value, reading->told[i].value), "%s: kind %d is %.17g",
                      reading->file, reading->told[i].kind, told->value);
        ck_assert_int_eq(told->provenance, reading->told[i].provenance);
        ck_assert_ptr_nonnull(strstr(told->source, reading->file));
        expected++;
    }
    for (guint i = 0; i < LH_TOOL_KINDS; i++)
        known += cluster->told[i].known &&
                 (i != LH_TOOL_NICS_JOINED || cluster->told[i].value != 1); /* almost always */
    ck_assert_uint_eq(known, expected);
    ck_assert_uint_eq(cluster->sources->len, 1);
}
END_TEST

/* The median of three times at one size; the version of the library, not of its header. */
START_TEST(reads_times_of_collectives)
{
    static const uint64_t bytes[] = { 1048576, 16777216, 67108864, 1073741824 };
    static const double us[] = { 17.9, 67.81, 209.2, 2812.5 };
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "all_gather.txt", NULL });
    const LhCollectiveTimes *row = &g_array_index(cluster->times, LhCollectiveTimes, 0);

    ck_assert_uint_eq(cluster->times->len, 1);
    ck_assert_int_eq(row->op, LH_COLL_ALL_GATHER);
    ck_assert_uint_eq(row->ranks, 8);
    ck_assert_str_eq(row->nccl, "2.27.3");
    ck_assert_str_eq(row->from.source, "all_gather_perf (all_gather.txt)");
    ck_assert_uint_eq(row->bytes->len, G_N_ELEMENTS(bytes));
    ck_assert_uint_eq(row->us->len, G_N_ELEMENTS(us));
    for (guint i = 0; i < G_N_ELEMENTS(bytes); i++) {
        ck_assert_uint_eq(g_array_index(row->bytes, uint64_t, i), bytes[i]);
        ck_assert_double_eq(g_array_index(row->us, double, i), us[i]);
    }
}
END_TEST

/* Times in milliseconds; no values in the column redop. */
START_TEST(reads_times_of_old_tables)
{
    g_autoptr(LhToolCluster) old = told_load((const char *[]){ "all-reduce-2018.txt", NULL });
    g_autoptr(LhToolCluster) blank = told_load((const char *[]){ "alltoall-2021.txt", NULL });
    const LhCollectiveTimes *reduce = &g_array_index(old->times, LhCollectiveTimes, 0);
    const LhCollectiveTimes *all = &g_array_index(blank->times, LhCollectiveTimes, 0);

    ck_assert_int_eq(reduce->op, LH_COLL_ALL_REDUCE);
    ck_assert_uint_eq(reduce->ranks, 2);
    ck_assert_double_eq(g_array_index(reduce->us, double, 0), 1628);
    ck_assert_int_eq(all->op, LH_COLL_ALL_TO_ALL);
    ck_assert_uint_eq(all->ranks, 8);
    ck_assert_double_eq(g_array_index(all->us, double, 0), 5209.4);
}
END_TEST

static const char *const prefixes[] = {
    "[1,0]<stdout>:",
    "   [1,0]<stdout>: ",
    "[prterun-node1-77@1,0]<stdout>: ",
    " 0: ",
    "[0] ",
    "[rank0]:",
    "[node1:0] ",
    "node1: ",
    "launcher/main: ",
    "2024-05-01T12:00:00.123456789Z ",
    "2024-05-01 12:00:00,123 [1,0]<stdout>:",
    "\xef\xbb\xbf",
};

/* Without the program's name in the text; the file's name gives it. */
START_TEST(leaves_prefixes_of_launchers_out)
{
    const char *prefix = prefixes[_i];
    g_autofree char *text =
        g_strdup_printf("%s# Rank 0 Pid 1 on a device 0\n%s# Rank 1 Pid 1 on a device 1\n%s" SIZES
                        "%s" ROW "9.0 1 1 0\n%s2097152 8 float none -1 10.0 1 1 0\n",
                        prefix, prefix, prefix, prefix, prefix);
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;

    if (g_str_has_prefix(prefix, "\xef")) { /* once per file */
        g_auto(GStrv) pieces = g_strsplit(text, prefix, -1);
        g_autofree char *joined = g_strjoinv("", pieces);

        g_free(text);
        text = g_strconcat(prefix, joined, NULL);
    }
    ck_assert_msg(lh_tool_parse(cluster, "nccl-AllGather.log", text, strlen(text), &error),
                  "%s: %s", prefix, error != NULL ? error->message : "");
    ck_assert_uint_eq(cluster->times->len, 1);
    ck_assert_int_eq(g_array_index(cluster->times, LhCollectiveTimes, 0).op, LH_COLL_ALL_GATHER);
}
END_TEST

/* --- unusable input
 * ------------------------------------------------------------------------------ */

static const struct {
    const char *text, *message;
} broken[] = {
    { "", "f:1:1: error: not the output of a known tool; allowed: nvidia-smi topo -m" },
    { "hello\n", "f:1:1: error: not the output of a known tool" },
    { "{\"a\": 1}", "f:1:1: error: not the output of a known tool" },
    { "one\ntw\xff\n", "f:2:3: error: not text in UTF-8" },
    { SMI "GPU0 X NV18\nGPU0 NV18 X\n", "f:3:1: error: \"GPU0\" where the row of GPU1 should be" },
    { SMI "GPU0 X NV18\n", "error: the file ends before the row of GPU1" },
    { SMI "GPU0 X\n", "f:2:1: error: 1 paths in the row of GPU0; allowed: 2, one for each column" },
    { SMI "GPU0 X NV37\n",
      "f:2:8: error: \"NV37\" is not a path; allowed: X, PIX, PXB, PHB, NODE" },
    { SMI "GPU0 X OK\n", "f:2:8: error: \"OK\" is output of nvidia-smi topo -p2p" },
    { SMI "GPU0 SYS X\n", "f:2:6: error: the row of GPU0 has X in another column than its own" },
    { SMI "GPU0 X NV4\nGPU1 NV2 X\n", "f:1:1: error: the path from GPU1 to GPU0 differs" },
    { SMI "GPU0 X NV2\nGPU1 NV4 X\n", "f:1:1: error: the path from GPU1 to GPU0 differs" },
    { SMI "GPU0 X SYS\nGPU1 SYS X\nLegend:\nX = Self\nPIX = at most one bridge\n",
      "f:1:1: error: the legend has no NVLink, so this is output of nvidia-smi topo -mp" },
    { SMI "GPU0 X SYS\nGPU1 SYS X\n" SMI, "f:4:1: error: a second matrix" },
    { "GPU0 GPU1 GPU2 CPU\nGPU0 X NV4 NV4\nGPU1 NV4 X NV4\nGPU2 NV4 NV4 X\n",
      "f:1: error: NVLink joins every two GPUs directly, without a switch" },
    { "GPU0 GPU1 GPU2 CPU\nGPU0 X NV4 SYS\nGPU1 NV4 X NV4\nGPU2 SYS NV4 X\n",
      "f:1: error: NVLink joins only some pairs of GPUs, or some" },
    { "GPU0 GPU1 GPU2 GPU3 CPU\nGPU0 X SYS NV4 SYS\nGPU1 SYS X SYS NV4\nGPU2 NV4 SYS X SYS\nGPU3 "
      "SYS NV4 SYS X\n",
      "f:1: error: NVLink joins pairs of GPUs that are not neighbours; with "
      "CUDA_VISIBLE_DEVICES=0,2,1,3 they are; a topology file" },
    { "GPU0 X NV18\n", "f:1:1: error: a matrix without its header" },
    { " GPU0 GPU1\nGPU0 0 15\n",
      "f:2:6: error: \"0\" is output of a tool for other vendors' GPUs" },
    { "== ROCm System Management Interface ==\n GPU0 GPU1\nGPU0 0 15\n",
      "f:1:1: error: this is output of rocm-smi for GPUs of AMD, which is not supported" },
    { "<html></html>", "error: the outermost element is <html>; allowed: <system>" },
    { "<system version=\"2\"></system>", "error: version=\"2\" of <system>; allowed: 1" },
    { "<system version=\"1\">", "f:1:21: error: invalid XML: " },
    { XML(""), "f:1: error: no <gpu>, as in files for virtual machines" },
    { XML("<nvlink/>"), "error: <nvlink> belongs in a <gpu>, and has a target" },
    { XML(GPU("<nvlink target=\"b\" tclass=\"0x068000\"/>")),
      "error: <nvlink> without the attribute count" },
    { XML(GPU("<nvlink target=\"b\" tclass=\"0x068000\" count=\"99\"/>")),
      "error: count=\"99\" of <nvlink>; allowed: a number from 1 to 64" },
    { XML("<nic><net speed=\"-1\"/></nic>"), "error: speed=\"-1\" of <net>; allowed: a number" },
    { XML("<pci link_speed=\"8.0 GT/s PCIe\" link_width=\"x\"/>"),
      "error: link_width=\"x\" of <pci>; allowed: a number from 0 to 32" },
    { HOSTS("<nvlink target=\"a\" count=\"2\" tclass=\"0x030200\"/>", ""),
      "f:1: error: several hosts in one file, but a GPU without NVLinks to a switch" },
    { HOSTS(TO_SWITCH, TO_SWITCH "</gpu><gpu dev=\"1\">" TO_SWITCH),
      "f:1: error: hosts of 1 and of 2 GPUs in one file" },
    { XML(GPU("<nvlink target=\"b\" tclass=\"0x020000\" count=\"2\"/>")),
      "error: tclass=\"0x020000\" of <nvlink>; allowed: 0x030200, a GPU, 0x068000, a switch" },
    { XML(GPU(TO_SWITCH "<nvlink target=\"b\" tclass=\"0x030200\" count=\"2\"/>")),
      "error: NVLinks that lead to no other GPU of the file: 2 of GPU a to b; give what NCCL" },
    { XML("<gpu gcn=\"942\" sm=\"90\"/>"), "error: an AMD GPU, as written by RCCL, which is not" },
    { "<system version=\"2\">", "error: version=\"2\" of <system>; allowed: 1, as NCCL writes it" },
    { XML("<pci><gpu dev=\"0\"><nvlink target=\"b\" tclass=\"0x068000\" count=\"2\"/></gpu>"
          "<gpu dev=\"1\"/></pci>"),
      "f:1: error: GPUs have different numbers of NVLinks to the switch" },
    { SIZES, "f:1: error: no table of nccl-tests with rows" },
    { SIZES ROW "9.0 1 1 0\n",
      "f:1: error: neither a line nor the file's name tells which program" },
    { "# all_gather_perf\n" SIZES ROW "9.0 1 1 0\n",
      "f:2: error: no lines \"#  Rank\", which list" },
    { "# all_gather_perf\n# Rank 0 Pid 1 on a device 0\n" SIZES ROW "9.0 1 1 0\n",
      "f:3: error: only one rank ran, which sends nothing" },
    { RANKS SIZES "1048576 8 9.0 1 1\n", "f:5:1: error: 5 columns; allowed: at least 7" },
    { RANKS SIZES ROW "9.0 1 1\n", "f:5:22: error: a time is a number of microseconds" },
    { RANKS OLD "1048576 8 float 9.0 1 1 0e+00\n",
      "f:5:21: error: the bandwidth here should be 116.5 GB/s, by size and time" },
    { RANKS OLD "1048576 8 float sum 9.0 116.5 1 0e+00\n# Out of bounds values : 4 FAILED\n",
      "f:6:26: error: 4 values of this run were wrong" },
    { RANKS "# Rank 0 Pid 2 on b device 0\n" SIZES,
      "f:4:8: error: rank 0 twice: several runs, or" },
    { "# all_gather_perf\n# Rank 0 Pid 1 on a device 0 [0x1] AMD Instinct MI300X\n" SIZES,
      "f:2:1: error: AMD GPUs are not supported" },
    { "# reduce_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on a device 1\n" SIZES ROW
      "9.0 1 1 0\n",
      "f:4: error: a topology file does not support this program's operation" },
    { RANKS SIZES ROW "-9.0 1 1 0\n", "f:5:25: error: a time is a number of microseconds" },
    { RANKS SIZES ROW "nan 1 1 0\n", "f:5:25: error: a time is a number of microseconds" },
    { RANKS SIZES ROW "9.0 1 x 0\n", "f:5:31: error: a bus bandwidth is a number of GB/s" },
    { RANKS SIZES ROW "9.0 1 1 7\n", "f:5:33: error: 7 values of this run were wrong" },
    { RANKS SIZES ROW "9.0 1 1 1\n", "f:5:33: error: 1 values of this run were wrong" },
    { RANKS SIZES ROW "9.0 1 1 N/A\n", "f:4: error: allowed: 2 to 256 sizes whose times grow" },
    { RANKS SIZES SIZES, "f:5:1: error: a second table; give one file per run" },
    { RANKS "# size count cputime algbw busbw\n", "f:4:14: error: times of the CPU" },
    { RANKS "# size count algbw\n", "f:4:1: error: a table without the columns time and busbw" },
    { RANKS "# sendrecv_perf\n" SIZES,
      "f:4:1: error: all_gather_perf and sendrecv_perf in one file" },
    { "# all_gather_perf\n# Rank 0 Group 1 Pid 1 on a device 0\n" SIZES,
      "f:2:16: error: ranks of several groups" },
    { "# all_gather_perf\n# Rank 0 Pid 1\n" SIZES,
      "f:2:1: error: a rank without the host that it is on" },
    { RANKS "# Rank 2 Group 0 Pid 1 on b device 0\n" SIZES ROW "9.0 1 1 0\n",
      "f:5: error: hosts have different numbers of ranks" },
    { "# alltoall_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on b device 0\n" SIZES ROW
      "9.0 1 1 0\n",
      "f:4: error: alltoall_perf on several hosts, which a topology file does not support" },
    { "# all_reduce_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on b device 0\n" SIZES
      "1024 8 float none -1 9.0 1 1 0\n",
      "f:4: error: no row of 1 MiB or more with a bandwidth" },
    { "# sendrecv_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on b device 0\n" SIZES
      "2048 8 float none -1 9.0 1 1 0\n",
      "f:4: error: no row of 1 MiB or more with a bandwidth" },
    { BW, "error: no row with a latency, or with a bandwidth of messages of 64 KiB or more" },
    { BW " 65536 5000 1 -5 1\n", "f:2:15: error: BW average is a number from 0" },
    { BW " 65536 5000 1 5\n", "f:2:1: error: 4 columns; allowed: 5, of a run over one port" },
    { BW " 65536 5000 1 5 1 1 1 1 1\n", "f:2:1: error: 9 columns; allowed: 5" },
    { " #bytes #sl #iterations\n", "f:1:1: error: a table with another column than #iterations" },
    { " #bytes #iterations BW average[kB/sec]\n", "f:1:24: error: unknown unit" },
    { " #bytes #iterations\n", "f:1:1: error: a table without BW average, t_typical[usec]" },
    { LAT " 2 1000 1 1 0\n", "f:2:13: error: a latency is a number of microseconds" },
    { LAT " 2 1000\n", "f:2:9: error: a latency is a number of microseconds" },
    { LAT " 4096 1000 1 1 2\n", "error: latencies start at messages of 4096 bytes" },
    { "RDMA_Read Latency Test\n" LAT, "f:2:1: error: ib_read_lat times a message and its answer" },
    { "BlockName=b Nodes=a\n", "error: a line of topology.conf begins with SwitchName=NAME" },
    { "SwitchName=a Nodes=n1\nfoo\n", "f:2:1: error: a line of topology.conf begins with" },
    { "SwitchName=a\n", "f:1:12: error: a switch has Nodes= or Switches=" },
    { "SwitchName=a Nodes=n1 x\n", "f:1:23: error: a key and its value are written KEY=VALUE" },
    { "SwitchName=a Nodes=n[1-\n",
      "f:1:20: error: \"n[1-\" is not a list of hosts: a bracket is not closed; was it cut" },
    { "SwitchName=a Nodes=n[2-1]\n",
      "is not a list of hosts: brackets contain numbers and ranges" },
    { "SwitchName=a Nodes=n[]\n", "is not a list of hosts: brackets contain numbers and ranges" },
    { "SwitchName=a Nodes=n1,\n", "is not a list of hosts: a name is missing" },
    { "SwitchName=a Nodes=n]1\n", "is not a list of hosts: names are letters, digits" },
    { "SwitchName=a Nodes=n[1-99999999]\n", "is not a list of hosts: more than 65536 names" },
    { "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n",
      "f:2:20: error: a node of this switch is listed twice, or on another switch as well" },
    { "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "f:2:12: error: duplicate switch" },
    { "SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n",
      "f:2: error: Switches= names a switch that has no line of its own" },
    { "SwitchName=a Switches=a\n", "error: no switch has Nodes=" },
};

START_TEST(refuses_what_is_broken)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;
    const char *text = broken[_i].text;

    ck_assert_msg(!lh_tool_parse(cluster, "f", text, strlen(text), &error), "%s", text);
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_msg(strstr(error->message, broken[_i].message) != NULL, "%s: %s", text,
                  error->message);
    ck_assert_msg(g_str_has_prefix(error->message, "f:"), "%s", error->message);
}
END_TEST

/* Repeats @piece. */
static char *
repeat(const char *before, const char *piece, guint times, const char *after)
{
    GString *text = g_string_new(before);

    for (guint i = 0; i < times; i++)
        g_string_append(text, piece);
    g_string_append(text, after);
    return g_string_free(text, FALSE);
}

static void
refuse_long(char *text, const char *message)
{
    g_autofree char *owned = text;
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;

    ck_assert(!lh_tool_parse(cluster, "f", owned, strlen(owned), &error));
    ck_assert_msg(strstr(error->message, message) != NULL, "%s", error->message);
}

START_TEST(refuses_what_is_too_long)
{
    refuse_long(repeat("", "x", 65537, "\n"), "f:1:1: error: a line of more than 65536 bytes");
    refuse_long(repeat("", "x ", 4097, "\n"), "error: a line of more than 4096 words");
    refuse_long(repeat("", "\n", 1000001, ""), "error: more than 1000000 lines");
    refuse_long(repeat("", "x", 16777217, ""), "f:1: error: larger than 16 MiB");
    refuse_long(repeat("GPU0 ", "GPU1 ", 256, "CPU\n"), "error: 257 GPUs and 0 NICs; allowed: 256");
    refuse_long(repeat("GPU0 GPU1 ", "N", 256, "\n"), "error: a name of more than 255 bytes");
    refuse_long(repeat("<system version=\"1\">", "<pci>", 32, ""), "or more than 32 nested");
    refuse_long(repeat("<system version=\"1\" a=\"", "x", 256, "\"/>"),
                "or one of more than 255 bytes");
    refuse_long(repeat("<system version=\"1\">", "<gpu/>", 257, "</system>"),
                "error: more than 256 <gpu>");
    refuse_long(repeat("SwitchName=a Nodes=n", "[1]", 256, "\n"), "a name is too long");
}
END_TEST

START_TEST(says_which_file_is_missing)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;

    ck_assert(!lh_tool_load(cluster, "/no/such/file", &error));
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error->message, "/no/such/file"));
}
END_TEST

/* --- several files ------------------------------------------------------------------------------
 */

#define WRITE_BW(rate) BW " 65536 5000 1 " rate " 1\n"

static const struct {
    const char *first, *second, *message;
} contradictions[] = {
    { SMI "GPU0 X SYS\nGPU1 SYS X\n", "GPU0 CPU\nGPU0 X\n",
      "b:1: error: the number of GPUs of a node is 1 here, and 2 in a:1; give files that agree" },
    { SMI "GPU0 X SYS\nGPU1 SYS X\n", SMI "GPU0 X NV4\nGPU1 NV4 X\n",
      "b:1: error: what joins the GPUs of a node is NVLink in pairs here, and no NVLink in a:1; "
      "give files that agree" },
    { "GPU0 GPU1 NIC0 NIC1 CPU\nGPU0 X SYS PIX SYS\nGPU1 SYS X SYS PIX\nNIC0 PIX SYS X SYS\nNIC1 "
      "SYS PIX SYS X\n",
      "<system version=\"1\"><pci busid=\"a\"><gpu dev=\"0\"/><nic><net speed=\"1000\"/><net "
      "speed=\"1000\"/></nic></pci><pci busid=\"b\"><gpu dev=\"1\"/><nic><net speed=\"1000\"/><net "
      "speed=\"1000\"/></nic></pci></system>",
      "b:1: error: the number of NICs of each GPU is 2 here, and 1 in a:1; give files that agree" },
    { WRITE_BW("392"), WRITE_BW("200"),
      "b:2: error: the bandwidth of a NIC is 25 GB/s here, and 49 GB/s in a:2; give files that "
      "agree" },
    { LAT " 2 1000 1 1 2\n", LAT " 2 1000 1 1 3\n 8 1000 1 1 2\n", /* of the shortest message */
      "b:2: error: the latency of a NIC is 3 us here, and 2 us in a:2; give files that agree" },
    { "SwitchName=a Nodes=n[1-2]\n", "SwitchName=a Nodes=n[1-4]\n",
      "b:1: error: the number of nodes is 4 here, and 2 in a:1; give files that agree" },
};

START_TEST(names_both_files_of_a_contradiction)
{
    const char *first = contradictions[_i].first, *second = contradictions[_i].second;
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;

    ck_assert(lh_tool_parse(cluster, "a", first, strlen(first), &error));
    ck_assert(!lh_tool_parse(cluster, "b", second, strlen(second), &error));
    ck_assert_str_eq(error->message, contradictions[_i].message);
}
END_TEST

/* Two measurements of one quantity that differ slightly: the first counts. */
START_TEST(takes_the_first_of_two_that_agree)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();

    ck_assert(lh_tool_parse(cluster, "a", WRITE_BW("392"), strlen(WRITE_BW("392")), NULL));
    ck_assert(lh_tool_parse(cluster, "b", WRITE_BW("388"), strlen(WRITE_BW("388")), NULL));
    ck_assert_double_eq(cluster->told[LH_TOOL_NIC_RATE].value, 49 * GB);
    ck_assert_str_eq(cluster->told[LH_TOOL_NIC_RATE].place, "a:2");
}
END_TEST

/* The lower of two times at one size, which have no median. */
START_TEST(takes_the_lower_of_two_times)
{
    const char *text = RANKS SIZES ROW "18.1 57 50 0\n" ROW "17.9 58 51 0\n"
                                       "2097152 8 float none -1 20.5 99 87 0\n";
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    const LhCollectiveTimes *row;

    ck_assert(lh_tool_parse(cluster, "a", text, strlen(text), NULL));
    ck_assert_uint_eq(cluster->times->len, 1);
    row = &g_array_index(cluster->times, LhCollectiveTimes, 0);
    ck_assert_uint_eq(row->us->len, 2);
    ck_assert_double_eq(g_array_index(row->us, double, 0), 17.9);
}
END_TEST

/* --- topologies ---------------------------------------------------------------------------------
 */

/* Everything of a node was measured: no base is needed. */
START_TEST(makes_a_topology_of_files_alone)
{
    g_autoptr(LhToolCluster) cluster = told_load(
        (const char *[]){ "smi-h100.txt", "nccl-h100.xml", "all_gather.txt", "sendrecv_perf.txt",
                          "ib_write_bw.txt", "ib_write_lat.txt", "topology.conf", NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, NULL, "h100-sxm");

    ck_assert_str_eq(t->name, "made");
    ck_assert_str_eq(t->device_name, "h100-sxm");
    ck_assert_uint_eq(t->gpus_per_node, 8);
    ck_assert_int_eq(t->scale_up, LH_SCALE_UP_SWITCH);
    ck_assert_double_eq(t->nvlink.bandwidth, 364.7 * GB);
    ck_assert_int_eq(t->nvlink.latency_ps, 6500000);
    ck_assert_int_eq(t->nvlink.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_int_eq(t->nvlink.ctas_provenance, LH_PROVENANCE_ASSUMED);
    ck_assert_double_eq(t->pcie.bandwidth, 48 * GB);
    ck_assert_int_eq(t->pcie.from.provenance, LH_PROVENANCE_DATASHEET);
    ck_assert_int_eq(t->pcie.latency_ps, 0);
    ck_assert_uint_eq(t->nics_per_node, 8);
    ck_assert_double_eq(t->nic.bandwidth, 49.07 * GB);
    ck_assert_int_eq(t->nic.latency_ps, 1270000);
    ck_assert_int_eq(t->nic.latency_provenance, LH_PROVENANCE_MEASURED);
    ck_assert_uint_eq(t->collective_times->len, 2);
    ck_assert_int_eq(t->fabric, LH_FABRIC_FAT_TREE);
    ck_assert_uint_eq(t->nodes_per_leaf, 6);
    ck_assert_uint_eq(t->max_nodes, 18);
    ck_assert_double_eq(t->collective_bandwidth, 0);
}
END_TEST

/* Rows and provenances of the base remain where nothing was measured. */
START_TEST(keeps_what_the_base_has)
{
    g_autoptr(LhToolCluster) cluster = told_load(
        (const char *[]){ "smi-h100.txt", "all_gather.txt", "all-reduce-two-hosts.txt", NULL });
    g_autoptr(LhTopology) base = lh_topology_load("hgx-h100", NULL);
    g_autoptr(LhTopology) t = told_made_of(cluster, "hgx-h100", NULL);
    const LhCollectiveTimes *first = &g_array_index(t->collective_times, LhCollectiveTimes, 0);

    ck_assert_double_eq(t->nvlink.bandwidth, 370.8 * GB);
    ck_assert_int_eq(t->nvlink.from.provenance, LH_PROVENANCE_DATASHEET);
    ck_assert_int_eq(t->nvlink.latency_ps, base->nvlink.latency_ps);
    ck_assert_int_eq(t->nvlink.latency_provenance, base->nvlink.latency_provenance);
    ck_assert_uint_eq(t->nvlink.ctas, base->nvlink.ctas);
    ck_assert_double_eq(t->nic.bandwidth, base->nic.bandwidth);
    ck_assert_int_eq(t->nic.latency_provenance, base->nic.latency_provenance);
    ck_assert_ptr_nonnull(strstr(t->nic.from.source, "hgx-h100: "));
    ck_assert_double_eq(t->collective_bandwidth, 338.8 * GB);
    ck_assert_int_eq(t->collective_from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_str_eq(first->from.source, "all_gather_perf (all_gather.txt)");
    ck_assert_uint_gt(t->collective_times->len, 10);
    ck_assert_uint_lt(t->collective_times->len, base->collective_times->len + 1);
    ck_assert_uint_eq(t->collective_lines->len, base->collective_lines->len);
    ck_assert_int_eq(t->fabric, base->fabric);
    ck_assert_int_eq(t->switch_latency_ps, base->switch_latency_ps);
    for (guint i = 1; i < t->collective_times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(t->collective_times, LhCollectiveTimes, i);

        ck_assert(row->op != first->op || row->ranks != first->ranks);
    }
}
END_TEST

#define SENDS(hosts, small, large)                                                                 \
    "# sendrecv_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on " hosts " device 0\n" SIZES  \
    "8 2 float sum -1 " small " 0 0 0\n1073741824 2 float sum -1 9.0 " large " " large " 0\n"

static LhToolCluster *
parsed(const char *const *texts)
{
    LhToolCluster *cluster = lh_tool_new();

    for (guint i = 0; texts[i] != NULL; i++) {
        g_autofree char *name = g_strdup_printf("f%u", i);
        g_autoptr(GError) error = NULL;

        ck_assert_msg(lh_tool_parse(cluster, name, texts[i], strlen(texts[i]), &error), "%s",
                      error != NULL ? error->message : "");
    }
    return cluster;
}

/* A NIC is faster than one pair of GPUs; the latency of a route includes PCIe. */
START_TEST(tells_a_pair_from_a_nic)
{
    g_autoptr(LhToolCluster) cluster =
        parsed((const char *[]){ WRITE_BW("392"), SENDS("b", "20.0", "30.5"), NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "hgx-h100", NULL);
    g_autoptr(LhToolCluster) alone = parsed((const char *[]){ SENDS("b", "1.0", "30.5"), NULL });
    g_autoptr(LhTopology) same_rate = told_made_of(alone, "hgx-h100", NULL);

    ck_assert_double_eq(t->nic.bandwidth, 49 * GB);
    ck_assert_double_eq(t->nic.pair_p2p, 30.5 * GB);
    ck_assert_int_eq(t->nic.latency_ps, 18000000);
    ck_assert_double_eq(same_rate->nic.bandwidth, 30.5 * GB);
    ck_assert_double_eq(same_rate->nic.pair_p2p, 0);
    ck_assert_int_eq(same_rate->nic.latency_ps, 0);
}
END_TEST

/* Sends between GPUs of a node use NVLink if it connects all of them, else PCIe. */
START_TEST(tells_nvlink_from_pcie)
{
    g_autoptr(LhToolCluster) pcie = parsed((const char *[]){
        "GPU0 GPU1 CPU\nGPU0 X SYS\nGPU1 SYS X\n", SENDS("a", "12.5", "20.25"), NULL });
    g_autoptr(LhToolCluster) nvlink = parsed((const char *[]){
        "GPU0 GPU1 CPU\nGPU0 X NV4\nGPU1 NV4 X\n", SENDS("a", "12.5", "20.25"), NULL });
    g_autoptr(LhTopology) without = told_made_of(pcie, NULL, "l40s");
    g_autoptr(LhTopology) with = told_made_of(nvlink, NULL, "a100-pcie-80g");

    ck_assert_int_eq(without->scale_up, LH_SCALE_UP_NONE);
    ck_assert_double_eq(without->pcie.bandwidth, 20.25 * GB);
    ck_assert_int_eq(without->pcie.latency_ps, 12500000);
    ck_assert_int_eq(without->pcie.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_uint_eq(without->max_nodes, 1);
    ck_assert_int_eq(with->scale_up, LH_SCALE_UP_PAIRS);
    ck_assert_double_eq(with->nvlink.bandwidth, 20.25 * GB);
    ck_assert_double_eq(with->pcie.bandwidth, 0);
}
END_TEST

static const struct {
    const char *texts[3];
    const char *base, *device, *message;
} impossible[] = {
    { { WRITE_BW("392") },
      NULL,
      "h100-sxm",
      "no file gives \"node.gpus\": nvidia-smi topo -m and NCCL's topology XML give it; or give "
      "--base NAME, a cluster to take missing fields from" },
    { { SMI "GPU0 X SYS\nGPU1 SYS X\n" }, NULL, NULL, "no file gives \"device\", the GPU: give" },
    { { SMI "GPU0 X NV4\nGPU1 NV4 X\n" },
      NULL,
      "h100-sxm",
      "no file gives \"node.scale_up.latency\": sendrecv_perf -b 8 on one host gives it" },
    { { SMI "GPU0 X NV4\nGPU1 NV4 X\n" },
      NULL,
      "l40s",
      "no file gives \"node.scale_up.bandwidth\": sendrecv_perf on one host gives it" },
    { { SMI "GPU0 X SYS\nGPU1 SYS X\n" },
      NULL,
      "h100-pcie",
      "no file gives \"node.pcie.bandwidth\": NCCL's topology XML gives it" },
    { { SMI "GPU0 X NV4\nGPU1 NV4 X\n", SENDS("a", "6.5", "70"), WRITE_BW("392") },
      NULL,
      "h100-sxm",
      "no file gives \"node.pcie.bandwidth\"" },
    { { SMI "GPU0 X SYS\nGPU1 SYS X\n", SENDS("a", "6.5", "20"), WRITE_BW("392") },
      NULL,
      "h100-pcie",
      "no file gives \"node.nics.count\"" },
    { { SMI "GPU0 X SYS\nGPU1 SYS X\n" },
      "hgx-h100",
      NULL,
      "8 NICs (hgx-h100) do not divide the 2 GPUs of a node (f0:1)" },
    { { SENDS("a", "6.5", "70"), XML(GPU("")) },
      NULL,
      "a100-sxm-80g",
      "f1:1: error: the GPUs have compute capability 90, but the device a100-sxm-80g has 80" },
    { { WRITE_BW("392"), "<system version=\"1\"><pci><gpu/><nic><net speed=\"200000\"/></nic></pci>"
                         "</system>" },
      "single-gpu",
      NULL,
      "f0:2: error: the bandwidth of a NIC is 49 GB/s here, more than its wire's rate, 25 GB/s in "
      "f1:1; give files that agree" },
    { { "# all_reduce_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on b device 0\n" SIZES ROW
        "9.0 1 1 0\n" },
      "hgx-h100",
      NULL,
      "f0:5: error: 1 ranks ran on each host, which has 8 GPUs; give a run on all GPUs of its "
      "hosts" },
    { { RANKS SIZES ROW "9.0 1 1 0\n2097152 8 float none -1 10.0 1 1 0\n",
        RANKS SIZES ROW "9.0 1 1 0\n2097152 8 float none -1 10.0 1 1 0\n" },
      "hgx-h100",
      NULL,
      "f1:4: error: all-gather on 2 GPUs is measured here and in f0:4; give one of them" },
    { { RANKS SIZES ROW "9.0 1 1 0\n2097152 8 float none -1 10.0 1 1 0\n", "GPU0 CPU\nGPU0 X\n" },
      "single-gpu",
      NULL,
      "f0:4: error: 2 ranks ran on one host, and a node has 1 GPUs; give files that agree" },
    { { SMI "GPU0 X SYS\nGPU1 SYS X\n" }, NULL, "no-such-device", "no-such-device" },
    { { "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 CPU\nGPU0 X NV4 SYS SYS PIX SYS\nGPU1 NV4 X SYS SYS PIX "
        "SYS\n"
        "GPU2 SYS SYS X NV4 SYS PIX\nGPU3 SYS SYS NV4 X SYS PIX\nNIC0 PIX PIX SYS SYS X SYS\n"
        "NIC1 SYS SYS PIX PIX SYS X\n" },
      "hgx-h100",
      NULL,
      "f0:1: error: no NVSwitch, which the fabric \"rail\" of hgx-h100 needs to cross rails" },
};

START_TEST(says_why_there_is_no_topology)
{
    g_autoptr(LhToolCluster) cluster = parsed(impossible[_i].texts);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made =
        told_make(cluster, impossible[_i].base, impossible[_i].device, &error);

    ck_assert_msg(made == NULL, "%s", impossible[_i].message);
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_msg(strstr(error->message, impossible[_i].message) != NULL, "%s", error->message);
}
END_TEST

/* --- options, bases and their effects
 * ------------------------------------------------------------ */

static LhTopology *
made_with(const LhToolCluster *cluster, const char *base_name, LhTopologyChange change,
          GError **error)
{
    g_autoptr(LhTopology) base = lh_topology_load(base_name, NULL);
    const LhToolParams params = { .name = "made", .base = base, .change = change };
    g_autoptr(LhToolTopology) made = lh_tool_topology(cluster, &params, error);

    return made == NULL ? NULL
                        : lh_topology_parse("made.json", made->document, made->length, error);
}

/* Lost NVLinks connect what the base says; a base without NVLink is an error. */
START_TEST(joins_lost_nvlinks_as_the_base_does)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "nccl-lost.xml", NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "azure-nc96-a100", NULL);
    g_autoptr(GError) error = NULL;

    ck_assert_int_eq(t->scale_up, LH_SCALE_UP_PAIRS);
    ck_assert_double_eq(t->nvlink.bandwidth, 240 * GB);
    ck_assert_ptr_null(made_with(cluster, "pcie-l40s", (LhTopologyChange){ 0 }, &error));
    ck_assert_msg(strstr(error->message, "nccl-lost.xml:5:") != NULL, "%s", error->message);
    ck_assert_msg(strstr(error->message, "NVLinks that lead to no other GPU of the file: 12 of GPU "
                                         "0001:00:00.0 to itself, 12 of GPU 0002") != NULL,
                  "%s", error->message);
}
END_TEST

START_TEST(refuses_lost_nvlinks_where_there_are_none)
{
    static const char none[] = "GPU0 GPU1 GPU2 GPU3 CPU\nGPU0 X SYS SYS SYS\nGPU1 SYS X SYS SYS\n"
                               "GPU2 SYS SYS X SYS\nGPU3 SYS SYS SYS X\n";
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "nccl-lost.xml", NULL });
    g_autoptr(GError) error = NULL;

    ck_assert(lh_tool_parse(cluster, "smi", none, strlen(none), NULL));
    ck_assert_ptr_null(made_with(cluster, "azure-nc96-a100", (LhTopologyChange){ 0 }, &error));
    ck_assert_msg(strstr(error->message, "; and there is no NVLink in smi:1") != NULL, "%s",
                  error->message);
}
END_TEST

/* A host with four GPUs of a domain of 72. */
START_TEST(makes_a_domain_of_trays)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "smi-tray.txt", NULL });
    g_autoptr(LhToolCluster) slurm =
        told_load((const char *[]){ "smi-tray.txt", "topology.conf", NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "gb300-nvl72", NULL);
    g_autoptr(GError) error = NULL;

    ck_assert_uint_eq(t->gpus_per_node, 72);
    ck_assert_uint_eq(t->nics_per_node, 72);
    ck_assert_uint_eq(t->hosts, 18);
    ck_assert_ptr_null(made_with(slurm, "gb300-nvl72", (LhTopologyChange){ 0 }, &error));
    ck_assert_msg(
        strstr(error->message, "6 hosts are not a whole number of NVLink domains of 18") != NULL,
        "%s", error->message);
}
END_TEST

/* Not in any file: which NIC a GPU uses, levels of the fabric, hosts. */
START_TEST(keeps_what_joins_nodes_of_the_base)
{
    static const uint64_t order[] = { 1, 0, 3, 2, 5, 4, 7, 6 };
    const LhFabricLevel levels[] = { { 4, 2 }, { 8, 3 } };
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "ib_write_bw.txt", NULL });
    g_autoptr(LhToolCluster) slurm =
        told_load((const char *[]){ "ib_write_bw.txt", "topology.conf", NULL });
    g_autoptr(LhTopology) base = lh_topology_load("fat-tree-a100", NULL);
    const LhToolParams params = { .name = "made", .base = base };
    g_autoptr(LhToolTopology) made = NULL;
    g_autoptr(LhTopology) t = NULL, rack = told_made_of(cluster, "nvl72", NULL);
    g_autoptr(GError) error = NULL;

    base->nic_of_gpu = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_array_append_vals(base->nic_of_gpu, order, G_N_ELEMENTS(order));
    base->fabric_levels = g_array_new(FALSE, FALSE, sizeof(LhFabricLevel));
    g_array_append_vals(base->fabric_levels, levels, G_N_ELEMENTS(levels));
    base->above[0] = levels[1];
    made = lh_tool_topology(cluster, &params, &error);
    ck_assert_msg(made != NULL, "%s", error != NULL ? error->message : "");
    t = lh_topology_parse("made.json", made->document, made->length, &error);
    ck_assert_msg(t != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_mem_eq(t->nic_of_gpu->data, order, sizeof(order));
    ck_assert_mem_eq(t->fabric_levels->data, levels, sizeof(levels));
    ck_assert_uint_eq(rack->hosts, 18);
    ck_assert_ptr_null(lh_tool_topology(slurm, &params, &error));
    ck_assert_msg(strstr(error->message,
                         "leaves of 6 nodes, but the first of the fabric \"levels\" of "
                         "fat-tree-a100 has 4 nodes") != NULL,
                  "%s", error->message);
}
END_TEST

START_TEST(takes_options_before_files)
{
    const LhTopologyChange change = { 2, 50 * GB, 400 * GB, 0 };
    g_autoptr(LhToolCluster) cluster =
        told_load((const char *[]){ "smi-4of8.txt", "ib_write_bw-frequency.txt", NULL });
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) t = made_with(cluster, "hgx-h100", change, &error);

    ck_assert_msg(t != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(t->nics_per_node, 2);
    ck_assert_double_eq(t->nic.bandwidth, 50 * GB);
    ck_assert_int_eq(t->nic.from.provenance, LH_PROVENANCE_ASSUMED);
    ck_assert_double_eq(t->nvlink.bandwidth, 400 * GB);
    ck_assert_ptr_null(
        made_with(cluster, "hgx-h100", (LhTopologyChange){ .oversubscription = 2 }, &error));
    ck_assert_msg(strstr(error->message, "--oversubscription: made has no leaf switches") != NULL,
                  "%s", error->message);
    g_clear_error(&error);
    ck_assert_ptr_null(made_with(cluster, "lasp-dgx", (LhTopologyChange){ .nics = 4 }, &error));
    ck_assert_msg(strstr(error->message, "--nics: collectives between nodes of made reach") != NULL,
                  "%s", error->message);
    g_clear_error(&error);
    ck_assert_ptr_null(made_with(cluster, "hgx-h100", (LhTopologyChange){ .nics = 9 }, &error));
    ck_assert_msg(strstr(error->message, "--nics: 9 NICs are more than the 8 GPUs") != NULL, "%s",
                  error->message);
}
END_TEST

/* A NIC of the topology is both NICs of a GPU, as in one run of ib_write_bw. */
START_TEST(joins_several_nics_of_a_gpu)
{
    g_autoptr(LhToolCluster) cluster =
        told_load((const char *[]){ "smi-several-nics.txt", "ib_write_bw-frequency.txt", NULL });
    g_autoptr(LhToolCluster) alone = told_load((const char *[]){ "smi-several-nics.txt", NULL });
    g_autoptr(LhTopology) t = told_made_of(cluster, "hgx-h100", NULL);
    g_autoptr(LhTopology) given = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert_uint_eq(t->nics_per_node, 8);
    ck_assert_double_eq_tol(t->nic.bandwidth, 2 * 98.02 * GB / 8, 0.01 * GB);
    ck_assert_ptr_null(made_with(alone, "hgx-h100", (LhTopologyChange){ 0 }, &error));
    ck_assert_msg(strstr(error->message, "error: 2 NICs are nearest to each GPU") != NULL, "%s",
                  error->message);
    given = made_with(alone, "hgx-h100", (LhTopologyChange){ .nic_rate = 50 * GB }, NULL);
    ck_assert_double_eq(given->nic.bandwidth, 50 * GB);
}
END_TEST

#define UNLIKE                                                                                     \
    "<system version=\"1\"><cpu><pci><gpu dev=\"0\"/><nic><net speed=\"100000\"/><net "            \
    "speed=\"200000\"/></nic></pci><pci><gpu dev=\"1\"/></pci></cpu></system>"

/* A shortened matrix: the rows of GPUs give the distance of NICs. */
START_TEST(takes_a_matrix_without_rows_of_nics)
{
    static const char rows[] = "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV18\tPIX\tSYS\n"
                               "GPU1\tNV18\t X \tSYS\tPIX\n";
    static const char *const ends[] = { "", "\nLegend:\n\n  X    = Self\n",
                                        "\nLegend:\n\n  X    = Self\n  NV#  = NVLinks\n" };
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *text = g_strconcat(rows, ends[i], NULL);
        g_autoptr(LhToolCluster) cluster = parsed((const char *[]){ text, NULL });
        g_autoptr(LhTopology) t =
            made_with(cluster, "fat-tree-a100", (LhTopologyChange){ 0 }, &error);

        ck_assert_msg(t != NULL, "%s", error != NULL ? error->message : "");
        ck_assert_uint_eq(t->gpus_per_node, 2);
        ck_assert_uint_eq(t->nics_per_node, 2);
    }
}
END_TEST

/* Transfers reach NCCL's rate for the wire, as in files without measurements. */
START_TEST(takes_what_a_wire_lets_transfers_reach)
{
    g_autoptr(LhToolCluster) cluster = told_load((const char *[]){ "nccl-h100.xml", NULL });
    g_autoptr(LhTopology) t = made_with(cluster, "hgx-h100", (LhTopologyChange){ 0 }, NULL);
    g_autoptr(LhTopology) other = lh_topology_load("hgx-h800", NULL);

    ck_assert_double_eq(t->nic.bandwidth, other->nic.bandwidth);
    ck_assert_int_eq(t->nic.from.provenance, LH_PROVENANCE_DATASHEET);
}
END_TEST

START_TEST(takes_options_for_nics_that_are_unlike)
{
    const LhTopologyChange change = { .nics = 1, .nic_rate = 25 * GB };
    g_autoptr(LhToolCluster) cluster = parsed((const char *[]){ UNLIKE, NULL });
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) t = made_with(cluster, "azure-nc96-a100", change, &error);

    ck_assert_msg(t != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_double_eq(t->nic.bandwidth, 25 * GB);
    ck_assert_ptr_null(made_with(cluster, "azure-nc96-a100", (LhTopologyChange){ 0 }, &error));
    ck_assert_msg(strstr(error->message, "f0:1: error: this NIC and the one of line 1 serve GPUs "
                                         "and have different speeds") != NULL,
                  "%s", error->message);
}
END_TEST

/* Rings at least as fast as the NICs limit nothing. */
START_TEST(names_files_that_add_nothing)
{
    static const char fast[] =
        "# all_reduce_perf\n# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on b device 0\n" SIZES ROW
        "9.0 1 400 0\n";
    g_autoptr(LhToolCluster) cluster =
        parsed((const char *[]){ fast, WRITE_BW("392"), WRITE_BW("390"), NULL });
    g_autoptr(LhTopology) base = lh_topology_load("azure-nc40-h100", NULL);
    const LhToolParams params = { .name = "made", .base = base };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made = lh_tool_topology(cluster, &params, &error);

    ck_assert_msg(made != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(made->notes->len, 2);
    ck_assert_str_eq(g_ptr_array_index(made->notes, 0),
                     "all_reduce_perf (f0) adds nothing: the bandwidth of collectives at a node is "
                     "no less than the joint bandwidth of a node's NICs, which is used instead");
    ck_assert_str_eq(
        g_ptr_array_index(made->notes, 1),
        "perftest (f2) adds nothing: the bandwidth of a NIC is taken from perftest (f1)");
}
END_TEST

/* Hosts are distinguished while a file is read; the result does not name them. */
START_TEST(writes_no_names_of_hosts)
{
    static const char *const hosts[] = { "ztan", "hosta", "rack1n", "leaf1", "mlx5" };
    g_autoptr(LhToolCluster) cluster =
        told_load((const char *[]){ "smi-h100.txt", "nccl-h100.xml", "all-reduce-two-hosts.txt",
                                    "sendrecv_perf.txt", "ib_write_bw.txt", "scontrol.txt", NULL });
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made = told_make(cluster, "hgx-h100", NULL, &error);

    ck_assert_msg(made != NULL, "%s", error != NULL ? error->message : "");
    for (guint i = 0; i < G_N_ELEMENTS(hosts); i++)
        ck_assert_msg(strstr(made->document, hosts[i]) == NULL, "%s", hosts[i]);
}
END_TEST

/* None of the shipped clusters has one. */
START_TEST(keeps_the_overhead_of_a_base)
{
    g_autofree char *dir = lh_data_dir();
    g_autofree char *file = g_build_filename(dir, "topologies", "hgx-h100.json", NULL);
    g_autofree char *path = g_strdup_printf("%s/overhead-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *text = NULL;
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GString) with = NULL;
    g_autoptr(LhTopology) t = NULL;

    ck_assert(g_file_get_contents(file, &text, NULL, NULL));
    with = g_string_new(text);
    ck_assert_uint_eq(
        g_string_replace(with, "\"nics\": {", "\"nics\": { \"overhead\": \"350us\",", 0), 1);
    ck_assert(g_file_set_contents(path, with->str, -1, NULL));
    t = told_made_of(cluster, path, NULL);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(t->nic_overhead_ps, 350000000);
}
END_TEST

/* Every shipped cluster as a base is unchanged if nothing else is given. */
START_TEST(keeps_every_base_as_it_is)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhToolCluster) cluster = lh_tool_new();
        g_autoptr(LhTopology) base = lh_topology_load(names[i], NULL);
        g_autoptr(LhTopology) t = told_made_of(cluster, names[i], NULL);

        ck_assert_uint_eq(t->gpus_per_node, base->gpus_per_node);
        ck_assert_int_eq(t->scale_up, base->scale_up);
        ck_assert_double_eq(t->nvlink.bandwidth, base->nvlink.bandwidth);
        ck_assert_int_eq(t->pcie.latency_ps, base->pcie.latency_ps);
        ck_assert_double_eq(t->nic.pair_p2p, base->nic.pair_p2p);
        ck_assert_double_eq(t->nic.pair_collective, base->nic.pair_collective);
        ck_assert_int_eq(t->nic_overhead_ps, base->nic_overhead_ps);
        ck_assert_int_eq(t->nic.ctas_provenance, base->nic.ctas_provenance);
        ck_assert_double_eq(t->collective_bandwidth, base->collective_bandwidth);
        ck_assert_double_eq(t->product_slowdown, base->product_slowdown);
        ck_assert_int_eq(t->fabric, base->fabric);
        ck_assert_uint_eq(t->max_nodes, base->max_nodes);
        ck_assert_int_eq(t->collective_times == NULL, base->collective_times == NULL);
    }
}
END_TEST

LH_TEST_MAIN_OF_LOOPS(
    "topology_import", { reads_every_value, G_N_ELEMENTS(readings) },
    { reads_times_of_collectives, 1 }, { reads_times_of_old_tables, 1 },
    { leaves_prefixes_of_launchers_out, G_N_ELEMENTS(prefixes) },
    { joins_lost_nvlinks_as_the_base_does, 1 }, { refuses_lost_nvlinks_where_there_are_none, 1 },
    { makes_a_domain_of_trays, 1 }, { keeps_what_joins_nodes_of_the_base, 1 },
    { takes_options_before_files, 1 }, { joins_several_nics_of_a_gpu, 1 },
    { takes_options_for_nics_that_are_unlike, 1 }, { takes_what_a_wire_lets_transfers_reach, 1 },
    { takes_a_matrix_without_rows_of_nics, 1 }, { names_files_that_add_nothing, 1 },
    { refuses_what_is_broken, G_N_ELEMENTS(broken) }, { refuses_what_is_too_long, 1 },
    { says_which_file_is_missing, 1 },
    { names_both_files_of_a_contradiction, G_N_ELEMENTS(contradictions) },
    { takes_the_first_of_two_that_agree, 1 }, { takes_the_lower_of_two_times, 1 },
    { makes_a_topology_of_files_alone, 1 }, { keeps_what_the_base_has, 1 },
    { tells_a_pair_from_a_nic, 1 }, { tells_nvlink_from_pcie, 1 },
    { says_why_there_is_no_topology, G_N_ELEMENTS(impossible) }, { writes_no_names_of_hosts, 1 },
    { keeps_the_overhead_of_a_base, 1 }, { keeps_every_base_as_it_is, 1 })
