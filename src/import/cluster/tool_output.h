/*
 * What the tools of a cluster print about it: nvidia-smi topo -m, NCCL's topology XML, nccl-tests,
 * perftest and Slurm's topology.conf. Each file adds what it says; topology_from_tools.h makes a
 * topology file of all of it. Names of hosts are compared while a file is read, and not kept.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/topology.h"

/* What can be told, and the unit of its value. */
typedef enum {
    LH_TOLD_GPUS,           /* of a node */
    LH_TOLD_HOSTS,          /* of a node, if several: an NVLink domain */
    LH_TOLD_SCALE_UP,       /* LhScaleUp */
    LH_TOLD_NVLINKS,        /* of a GPU */
    LH_TOLD_CAPABILITY,     /* of the GPU, 90 for sm_90 */
    LH_TOLD_PEER_RATE,      /* bytes/s that NCCL's sends reach between GPUs of a node */
    LH_TOLD_PEER_LATENCY,   /* seconds, likewise */
    LH_TOLD_PCIE_RATE,      /* bytes/s of a GPU's way to its host */
    LH_TOLD_NICS,           /* next to the GPUs of a node; those of one GPU as one */
    LH_TOLD_NICS_JOINED,    /* in each of these; mostly 1 */
    LH_TOLD_NIC_WIRE,       /* bytes/s, of the wire of one */
    LH_TOLD_NIC_RATE,       /* bytes/s that one reaches */
    LH_TOLD_NIC_LATENCY,    /* seconds, from memory to memory */
    LH_TOLD_ROUTE_RATE,     /* bytes/s that NCCL's sends reach between GPUs of two nodes */
    LH_TOLD_ROUTE_LATENCY,  /* seconds, likewise */
    LH_TOLD_RINGS_RATE,     /* bytes/s of collectives of several nodes, at one node */
    LH_TOLD_NODES,          /* of the cluster */
    LH_TOLD_NODES_PER_LEAF, /* at the largest leaf switch */
    LH_TOLD_KINDS
} LhToldKind;

typedef struct {
    bool known;
    double value;    /* nocheck:unit: of its kind */
    uint32_t weight; /* of the way in which it was found; the heavier one holds */
    uint64_t ranks;  /* measured with NCCL: of a node; else 0 */
    LhProvenance provenance;
    char *source; /* "ib_write_bw (nic.txt)" */
    char *place;  /* "nic.txt:12" */
} LhTold;

typedef struct {
    LhToldKind kind;
    char *source; /* as of LhTold */
} LhToldSaid;

/* Groups of GPUs of a node, each behind one PCIe link that its GPUs share. */
typedef struct {
    const char *name; /* "switch", "socket"; static */
    GArray *of_gpu;   /* of uint64_t: the group of each GPU, numbered as GPUs come */
    double up;        /* bytes/s of the slowest such link; nocheck:unit: as in files; 0: not said */
    char *source;     /* what says so; NULL */
} LhToldLevel;

/* PCIe of a node as one file has it. */
typedef struct {
    guint gpus; /* 0: no file tells */
    uint32_t weight;
    bool complete;    /* whether it tells of every two GPUs, also of those that NVLink joins */
    GArray *levels;   /* of LhToldLevel, innermost first */
    const char *p2p;  /* as in a topology file, and as NCCL goes about it; static */
    bool p2p_two;     /* two GPUs that are alone reach each other, however far they are */
    double by_memory; /* of its own link, what a GPU reaches through memory; nocheck:unit: a share
                       */
    char *asks;       /* what to give for what it does not tell of a link; NULL: nothing */
    char *source, *place;
} LhToldTree;

typedef struct {
    LhTold told[LH_TOLD_KINDS];
    LhToldTree tree;
    GArray *nic_of_gpu; /* of uint64_t: of NICs that count, the one of each GPU; NULL: not told */
    GPtrArray *notes;   /* of char *: what readers of files left out, a line each */
    GArray *times;      /* of LhCollectiveTimes, of GPUs of one node */
    GPtrArray *places;  /* of char *, for each of these */
    GPtrArray *sources; /* of char *: what was read, "nvidia-smi topo -m (topo.txt)" */
    /* What is wrong with a topology that takes these from the files, "nccl.xml:7:9: error: ...";
     * NULL: nothing. */
    GArray *said;       /* of LhToldSaid: every value of every file, whether or not it holds */
    char *lost_nvlinks; /* no file says where they lead */
    char *unlike_nics;  /* not all are of one speed */
} LhToldCluster;

LhToldCluster *lh_told_new(void);
void lh_told_free(LhToldCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhToldCluster, lh_told_free)

/* "the bandwidth of a NIC". */
const char *lh_told_kind_name(LhToldKind kind);

/* Frees what a row of LhToldCluster.times owns. */
void lh_told_times_clear(LhCollectiveTimes *row);

/*
 * Reads what one tool printed, which its content tells, and adds what it says. LH_ERROR_INPUT with
 * file and line if it is of no tool that is known, is broken, or contradicts what was told before.
 */
bool lh_told_load(LhToldCluster *cluster, const char *path, GError **error);
bool lh_told_parse(LhToldCluster *cluster, const char *file, const char *text, gsize length,
                   GError **error);
